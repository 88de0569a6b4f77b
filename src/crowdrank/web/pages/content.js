// An item as people see it: text, Markdown, a picture that can be looked at closely, a sound, a page in a sandbox.

import { base, el } from "/static/kit.js";
import { markdown } from "/static/markdown.js";
import { t } from "/static/words.js";

const SPEEDS = [0.75, 1, 1.25, 1.5, 2];

// the way a text runs, by its first letter; its paragraphs may each run their own way
export function direction(text) {
  const first = /\p{L}/u.exec(text.replace(/`[^`]*`|https?:\S+/g, ""))?.[0] ?? "";
  return /[\u0590-\u08ff\ufb1d-\ufefc]/.test(first) ? "rtl" : "ltr";
}

export function content(item) {
  const name = t("item", { label: item.label.toUpperCase() });
  if (item.content_type !== "text" && item.content.startsWith("/api/v1/")) item = { ...item, content: base + item.content };
  if (item.content_type === "markdown") return el("div", { className: "text", dir: direction(item.content) }, markdown(item.content));
  if (item.content_type === "image") return picture(item.content, name);
  if (item.content_type === "audio") return sound(item.content, name);
  if (item.content_type === "html") return el("iframe", { src: item.content, sandbox: "", title: name });
  return el("div", { className: "text", dir: "auto" }, item.content);
}

function picture(src, name) {
  const image = el("img", { src, alt: name, referrerpolicy: "no-referrer" });
  const broken = el("p", { className: "bad", hidden: true }, t("not_loaded"));
  image.addEventListener("error", () => { broken.hidden = false; });
  return el("div", { className: "picture" }, el("button", { type: "button", className: "zoom", "aria-label": t("zoom", { item: name }), onclick: () => zoom(src, name) }, image), broken);
}

// the picture alone: as large as the window, or a pixel a pixel; plus and minus go between
function zoom(src, name) {
  const image = el("img", { src, alt: name, referrerpolicy: "no-referrer" });
  const size = el("output", { "aria-live": "polite" });
  let scale = 0;
  const set = (to) => {
    scale = to && Math.min(8, Math.max(0.1, to));
    image.style.width = scale ? `${image.naturalWidth * scale}px` : "";
    image.className = scale ? "" : "fit";
    size.textContent = scale ? `${Math.round(scale * 100)} %` : t("fit");
  };
  const now = () => scale || image.clientWidth / Math.max(1, image.naturalWidth);
  const button = (words, sign, act) => el("button", { type: "button", "aria-label": words, title: words, onclick: act }, sign);
  const view = el("dialog", { className: "viewer", "aria-label": name, onclose: () => view.remove(), onkeydown: (event) => {
    const act = { "+": () => set(now() * 1.4), "=": () => set(now() * 1.4), "-": () => set(now() / 1.4), 0: () => set(0), 1: () => set(1) }[event.key];
    if (act) { event.preventDefault(); act(); }
    event.stopPropagation();
  } }, el("div", { className: "choices bar" }, button(t("smaller"), "−", () => set(now() / 1.4)), button(t("larger"), "+", () => set(now() * 1.4)), button(t("fit"), "⤢", () => set(0)), button("100 %", "1:1", () => set(1)), size, button(t("close"), "✕", () => view.close())),
  el("div", { className: "sheet", tabindex: "0", role: "group", "aria-label": name, onclick: () => set(scale ? 0 : 1), onwheel: (event) => { if (event.ctrlKey) { event.preventDefault(); set(now() * (event.deltaY < 0 ? 1.1 : 0.9)); } } }, image));
  document.body.append(view);
  view.showModal();
  set(0);
}

function sound(src, name) {
  const player = el("audio", { src, controls: true, preload: "metadata", "aria-label": name });
  let speed = 1;
  try { speed = Number(localStorage.getItem("crowdrank.speed")) || 1; } catch { /* the usual speed */ }
  const chosen = el("select", { "aria-label": t("speed"), onchange: () => {
    player.playbackRate = Number(chosen.value);
    try { localStorage.setItem("crowdrank.speed", chosen.value); } catch { /* for this sound alone */ }
  } }, ...SPEEDS.map((one) => el("option", { value: String(one), ...(one === speed ? { selected: "" } : {}) }, `${one} ×`)));
  player.addEventListener("play", () => {
    player.playbackRate = Number(chosen.value);
    for (const other of document.querySelectorAll("audio")) if (other !== player) other.pause();
  });
  return el("div", { className: "sound" }, player, chosen);
}

// the share of a sound that was played, or 1 where it cannot be
export function heard(player) {
  if (player.error) return 1;
  let seconds = 0;
  for (let at = 0; at < player.played.length; at += 1) seconds += player.played.end(at) - player.played.start(at);
  return player.duration > 0 ? seconds / player.duration : 0;
}
