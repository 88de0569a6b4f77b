// What both pages share: elements without markup, calls, and Markdown as a fixed set of elements.

export function el(name, given = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key === "className" ? "class" : key, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// of several campaigns in one service each has its pages below a path of its own
export const base = /^\/c\/[^/]+/.exec(location.pathname)?.[0] ?? "";

export async function call(method, path, body, headers = {}) {
  let response, found = {};
  try {
    response = await fetch(`${base}/api/v1${path}`, {
      method, headers: { "content-type": "application/json", ...headers }, cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body), signal: AbortSignal.timeout?.(30_000),
    });
  } catch { throw Object.assign(new Error("There is no connection; try again."), { status: 0 }); }
  try { found = await response.json(); } catch { /* an answer without a body */ }
  if (!response.ok) {
    const error = new Error(found.error?.message ?? `the service answered ${response.status}`);
    throw Object.assign(error, { status: response.status, type: found.error?.type, detail: found.error,
      wait: Number(response.headers.get("retry-after")) || 0 });
  }
  return found;
}

export function uuid() {
  return crypto.randomUUID?.() ?? "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (c) => (c ^ (crypto.getRandomValues(new Uint8Array(1))[0] & (15 >> (c / 4)))).toString(16));
}

// answers that the service has not acknowledged; held by this tab alone where the browser keeps nothing
const OUTBOX = `crowdrank.outbox${base}`;
let memory = null;
export function outbox() {
  if (memory) return memory;
  try { return JSON.parse(localStorage.getItem(OUTBOX)) ?? []; } catch { return []; }
}
export function keep(rows) {
  try { localStorage.setItem(OUTBOX, JSON.stringify(rows)); memory = null; } catch { memory = rows; }
}

// paragraphs, headings, lists, tables, quotes, code, emphasis, https links; everything else is text
export function markdown(text) {
  const out = el("div", { className: "markdown" });
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    let found;
    if (/^```/.test(line)) {
      const code = [];
      for (at += 1; at < lines.length && !/^```/.test(lines[at]); at += 1) code.push(lines[at]);
      at += 1;
      out.append(el("pre", {}, el("code", {}, code.join("\n"))));
    } else if ((found = /^(#{1,4})\s+(.*)/.exec(line))) {
      out.append(inline(el("h3"), found[2]));
      at += 1;
    } else if (/^\s*([-*]|\d+[.)])\s+/.test(line)) {
      const list = el(/^\s*\d/.test(line) ? "ol" : "ul");
      for (; at < lines.length && (found = /^\s*(?:[-*]|\d+[.)])\s+(.*)/.exec(lines[at])); at += 1) list.append(inline(el("li"), found[1]));
      out.append(list);
    } else if (/^\s*\|/.test(line) && /^[\s|:-]*-[\s|:-]*$/.test(lines[at + 1] ?? "")) {
      const row = (cells, name) => el("tr", {}, ...cells.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(el(name, { dir: "auto" }), cell.trim())));
      const body = el("tbody");
      for (at += 2; at < lines.length && /^\s*\|/.test(lines[at]); at += 1) body.append(row(lines[at], "td"));
      out.append(el("table", {}, el("thead", {}, row(line, "th")), body));
    } else if (/^>\s?/.test(line)) {
      const quote = [];
      for (; at < lines.length && /^>\s?/.test(lines[at]); at += 1) quote.push(lines[at].replace(/^>\s?/, ""));
      out.append(el("blockquote", {}, inline(el("p"), quote.join(" "))));
    } else if (!line.trim()) {
      at += 1;
    } else {
      const words = [];
      for (; at < lines.length && lines[at].trim() && !/^(```|#{1,4}\s|>\s?|\s*\||\s*([-*]|\d+[.)])\s)/.test(lines[at]); at += 1) words.push(lines[at]);
      if (!words.length) { words.push(line); at += 1; }
      out.append(inline(el("p"), words.join("\n")));
    }
  }
  return out;
}

function inline(node, text) {
  const parts = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\*[^*\n]+\*|\[[^\]\n]+\]\(https:\/\/[^\s)]+\))/;
  for (const part of text.split(parts)) {
    let found;
    if (/^`.+`$/.test(part)) node.append(el("code", {}, part.slice(1, -1)));
    else if (/^\*\*.+\*\*$/.test(part)) node.append(el("strong", {}, part.slice(2, -2)));
    else if (/^\*.+\*$/.test(part)) node.append(el("em", {}, part.slice(1, -1)));
    else if ((found = /^\[(.+)\]\((https:.+)\)$/.exec(part))) node.append(el("a", { href: found[2], rel: "noopener noreferrer", target: "_blank" }, found[1]));
    else node.append(part);
  }
  return node;
}

export function content(item) {
  if (item.content_type !== "text" && item.content.startsWith("/api/v1/")) item = { ...item, content: base + item.content };
  if (item.content_type === "markdown") return el("div", { className: "text", dir: "auto" }, markdown(item.content));
  if (item.content_type === "image") return el("img", { src: item.content, alt: `Item ${item.label.toUpperCase()}`, referrerpolicy: "no-referrer" });
  if (item.content_type === "audio") return el("audio", { src: item.content, controls: true, preload: "metadata" });
  if (item.content_type === "html") return el("iframe", { src: item.content, sandbox: "", title: `Item ${item.label.toUpperCase()}` });
  return el("div", { className: "text", dir: "auto" }, item.content);
}
