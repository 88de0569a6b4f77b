// One's own answers, the latest first: searched by the service, commented, changed.

import { el } from "/static/kit.js";
import { t, when } from "/static/words.js";

export function past({ call, worded, comment, change, close }) {
  const list = el("ol", { className: "past", "aria-live": "polite" });
  const search = el("input", { id: "find", type: "search", maxlength: "200" });
  const more = el("button", { type: "button", hidden: true, onclick: () => load(before) }, t("more"));
  let before = null;

  function row(one) {
    const texts = one.request.items.map((item) => (["text", "markdown"].includes(item.content_type) ? item.content : `[${item.content_type}]`)), labels = one.request.items.length > 1;
    return el("li", {}, el("p", {}, el("strong", { dir: "auto" }, worded(one.request, one.answer)), " ", el("span", { className: "dim" }, [when(one.at), one.changed ? t("changed") : ""].filter(Boolean).join(" · "))),
      el("p", { className: "short", dir: "auto" }, [one.request.query.content, ...texts.map((text, place) => (labels ? `${one.request.items[place].label.toUpperCase()}: ${text}` : text))].filter(Boolean).join(" — ")),
      one.comment ? el("p", { dir: "auto" }, "✎ ", one.comment) : null,
      el("div", { className: "tools" }, el("button", { type: "button", onclick: () => change(one) }, t("change")), el("button", { type: "button", onclick: () => comment(one) }, t("comment"))));
  }

  async function load(from) {
    const words = search.value.trim();
    const found = await call("GET", `/history?limit=30${from ? `&before=${from}` : ""}${words ? `&search=${encodeURIComponent(words)}` : ""}`).catch((error) => ({ judgments: [], next_before: null, error }));
    if (!from) list.replaceChildren();
    list.append(...found.judgments.map(row));
    if (!list.children.length) list.append(el("li", {}, found.error?.message ?? t("history_none")));
    before = found.next_before;
    more.hidden = !before;
  }

  load(null);
  const form = el("form", { onsubmit: (event) => { event.preventDefault(); load(null); } }, el("p", {}, el("label", { for: "find" }, t("history_search"))), el("div", { className: "choices bar" }, search, el("button", {}, t("find"))));
  return [el("h2", {}, t("history")), form, list, more, close()];
}
