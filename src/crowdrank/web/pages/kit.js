// What the pages share: elements without markup, calls, and the outbox of answers.

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

export { content } from "/static/content.js";
export { markdown } from "/static/markdown.js";
