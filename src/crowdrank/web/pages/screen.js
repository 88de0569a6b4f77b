// How a request is laid out: as wide as its contents need, and for pairs the switches that help to compare.

import { el } from "/static/kit.js";
import { markDifferences, scrollTogether, unmark } from "/static/compare.js";
import { t } from "/static/words.js";

const LONG = 900;

// pairs with long texts, code or pages use the whole width; a short text is not stretched
export function wideFor(one) {
  const long = one && one.items.length > 1 && one.items.some((item) => item.content_type !== "text" || item.content.length > LONG);
  document.body.classList.toggle("wide", Boolean(long));
}

export function markScreen(main, recall, note, say) {
  const items = main.querySelector(".items.pair");
  const panes = items ? [...items.querySelectorAll(".pane")] : [];
  if (panes.length !== 2) return;
  const texts = panes.every((pane) => pane.querySelector(".text")), tall = panes.some((pane) => pane.scrollHeight > innerHeight * 0.6);
  const set = {
    differences: (on) => { if (!on) unmark(items); else if (!markDifferences(...panes)) say(t("too_different")); },
    together: (on) => { items.classList.toggle("together", on); for (const pane of panes) { if (on) pane.setAttribute("tabindex", "0"); else pane.removeAttribute("tabindex"); } },
    stack: (on) => items.classList.toggle("stacked", on),
  };
  const shown = [...(texts ? ["differences"] : []), ...(tall ? ["together"] : []), ...(innerWidth >= 600 ? ["stack"] : [])];
  if (!shown.length) return;
  scrollTogether(panes);
  items.before(el("div", { className: "switches" }, ...shown.map((name) => {
    const box = el("input", { type: "checkbox", onchange: () => { note(name, box.checked); set[name](box.checked); } });
    box.checked = recall(name, false);
    if (box.checked) set[name](true);
    return el("label", {}, box, t(name));
  })));
}
