// A ranking: a list of items, best first, moved by keys, buttons or a drag; an item may be tied with the one above.

import { content } from "/static/content.js";
import { el } from "/static/kit.js";
import { t } from "/static/words.js";

export function ranking(request, old, say, send) {
  const order = old?.order ? old.order.flatMap((group) => group.map((label, place) => ({ label, tied: place > 0 }))) : request.items.map((item) => ({ label: item.label, tied: false }));
  const list = el("ol", { className: "order", "aria-labelledby": "question" });
  let lifted = null;

  function move(one, by, seen = true) {
    const place = order.indexOf(one), to = place + by;
    if (to < 0 || to >= order.length) return;
    [order[place], order[to]] = [order[to], order[place]];
    order[place].tied = order[to].tied = false;
    draw(one);
    if (seen) one.row.scrollIntoView({ block: "nearest" });
    say(t("is_at", { item: one.label.toUpperCase(), place: to + 1, n: order.length }));
  }

  function tie(one) {
    one.tied = !one.tied && order[0] !== one;
    draw(one);
  }

  // rows are moved and not made again, so that pictures and sounds stay as they are
  function draw(focused) {
    const active = document.activeElement, tool = active?.closest?.("li") === focused?.row ? active : null;
    order.forEach((one, at) => {
      // a row that is dragged stays in the page, or the browser would let go of it
      if (list.children[at] !== one.row && one === lifted) list.insertBefore(list.children[at], one.row.nextSibling);
      else if (list.children[at] !== one.row) list.insertBefore(one.row, list.children[at] ?? null);
      one.row.className = [one.tied ? "tied" : "", one === lifted ? "lifted" : ""].join(" ").trim();
      one.row.setAttribute("aria-label", t("place", { place: at + 1, item: one.label.toUpperCase() }) + (one.tied ? t("tied") : ""));
      one.number.textContent = one.tied ? "=" : String(at + 1);
      one.up.disabled = one.tie.disabled = at === 0;
      one.down.disabled = at === order.length - 1;
      one.tie.setAttribute("aria-pressed", String(one.tied));
    });
    (tool && !tool.disabled ? tool : focused?.row)?.focus({ preventScroll: true });
  }

  function keys(event, one) {
    if (event.target !== one.row || (event.repeat && !event.key.startsWith("Arrow"))) return;
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by && (event.shiftKey || lifted === one)) move(one, by);
    else if (by) list.children[order.indexOf(one) + by]?.focus();
    else if (event.key === " ") {
      lifted = lifted === one ? null : one;
      draw(one);
      say(lifted ? t("lifted", { item: one.label.toUpperCase() }) : "");
    } else if (event.key === "t" || event.code === "KeyT") tie(one);
    else if (event.key === "f") fold(one, !one.body.classList.contains("folded"));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // one way for mouse and touch: the row follows the pointer past the middle of its neighbours
  function drag(event, one) {
    event.preventDefault();
    one.row.focus({ preventScroll: true });
    lifted = one;
    draw(one);
    const middle = (other) => { const box = other.row.getBoundingClientRect(); return (box.top + box.bottom) / 2; };
    const follow = (moved) => {
      for (let at = order.indexOf(one); ; at = order.indexOf(one)) {
        if (order[at + 1] && moved.clientY > middle(order[at + 1])) move(one, 1, false);
        else if (at && moved.clientY < middle(order[at - 1])) move(one, -1, false);
        else return;
      }
    };
    const end = () => { lifted = null; draw(one); removeEventListener("pointermove", follow); removeEventListener("pointerup", end); removeEventListener("pointercancel", end); };
    addEventListener("pointermove", follow);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  }

  function fold(one, folded) {
    one.body.classList.toggle("folded", folded);
    one.fold.setAttribute("aria-pressed", String(folded));
  }

  for (const one of order) {
    const name = one.label.toUpperCase();
    const tool = (key, sign, act) => el("button", { type: "button", "aria-label": t(key, { item: name }), onclick: act }, sign);
    one.number = el("span", { className: "grip", "aria-hidden": "true", onpointerdown: (event) => drag(event, one) });
    one.up = tool("move_up", "↑", () => move(one, -1));
    one.down = tool("move_down", "↓", () => move(one, 1));
    one.tie = tool("tie_above", "=", () => tie(one));
    one.body = el("div", { className: "body" }, content(request.items.find((item) => item.label === one.label)));
    // long rows fold, so that all of them are in sight while they are put in order
    one.fold = tool("fold", "⇳", () => fold(one, !one.body.classList.contains("folded")));
    one.row = el("li", { tabindex: "0", onkeydown: (event) => keys(event, one) }, one.number, one.body, el("div", { className: "tools" }, one.up, one.down, one.tie, one.fold));
  }
  draw();

  function groups() {
    const found = [];
    for (const one of order) { if (one.tied && found.length) found.at(-1).push(one.label); else found.push([one.label]); }
    return found;
  }
  const sendOrder = () => send({ order: groups() });
  const button = el("div", { className: "choices" }, el("button", { type: "button", className: "main", onclick: sendOrder }, `${t("send_order")} `, el("kbd", { "aria-hidden": "true" }, "Enter")));
  const all = el("button", { type: "button", "aria-pressed": "false", onclick: () => { const folded = all.getAttribute("aria-pressed") !== "true"; all.setAttribute("aria-pressed", String(folded)); for (const one of order) fold(one, folded); } }, t("fold_all"));
  if (request.cant_tell) button.append(el("button", { type: "button", onclick: () => send({ cant_tell: true }) }, t("cant_tell")));
  button.append(all);
  return { list, button, send: sendOrder, order: groups };
}
