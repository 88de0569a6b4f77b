// The annotator's page: one request at a time; an answer stays in the outbox until the service has acknowledged it.

import { call, content, el, markdown } from "/static/kit.js";

const main = document.getElementById("main"), status = document.getElementById("status"), dialog = document.getElementById("dialog");
const OUTBOX = "crowdrank.outbox";
let me = null, request = null, begun = 0, order = [], old = null, busy = false, timer = 0, beat = 0;
const done = [];

function say(text, bad = false) { status.textContent = text; status.className = bad ? "bad" : ""; }
function outbox() { try { return JSON.parse(localStorage.getItem(OUTBOX)) ?? []; } catch { return []; } }
function keep(rows) { localStorage.setItem(OUTBOX, JSON.stringify(rows)); }
function screen(...nodes) { main.replaceChildren(...nodes); main.focus({ preventScroll: true }); window.scrollTo(0, 0); }
function later(seconds, what) { clearTimeout(timer); timer = setTimeout(what, seconds * 1000); }
function footer(shown) { document.getElementById("footer").hidden = !shown; document.getElementById("skip").disabled = !request; document.getElementById("undo").disabled = !done.length; }

async function start() {
  const invite = location.hash.slice(1);
  if (invite.startsWith("cri_")) {
    history.replaceState(null, "", location.pathname);
    sessionStorage.setItem("crowdrank.invite", invite);
  }
  try {
    me = await call("GET", "/me");
  } catch (error) {
    if (error.status === 401) return join();
    if (error.status === 403) return screen(el("p", {}, error.message));
    say("No connection; trying again.", true);
    return later(3, start);
  }
  sessionStorage.removeItem("crowdrank.invite");
  document.getElementById("title").textContent = me.campaign.name;
  document.title = me.campaign.name;
  for (const one of [...me.recent].reverse()) done.push(one.submission);
  count();
  if (!me.consented) return guidelines(true);
  await flush();
  return next();
}

function join() {
  const invite = sessionStorage.getItem("crowdrank.invite");
  if (!invite) return screen(el("p", {}, "Open the invite link that you were sent to take part."));
  const name = el("input", { id: "name", maxlength: "80", autocomplete: "nickname" });
  const form = el("form", { onsubmit: async (event) => {
    event.preventDefault();
    try {
      await call("POST", "/join", { invite, ...(name.value.trim() ? { name: name.value } : {}) });
      say("");
      await start();
    } catch (error) { say(error.message, true); }
  } }, el("p", {}, el("label", { for: "name" }, "Your name, or nothing to stay a number")), name, " ", el("button", { className: "main" }, "Take part"));
  screen(form);
  name.focus();
}

function guidelines(first) {
  const text = el("article", { className: "item" }, markdown(me.campaign.guidelines || "There are no guidelines."));
  const accept = el("button", { className: "main", type: "button", onclick: async () => {
    if (!first) return dialog.close();
    try { await call("POST", "/consent", {}); me.consented = true; next(); } catch (error) { say(error.message, true); }
  } }, first ? "I have read this and take part" : "Close");
  if (first) { footer(false); return screen(text, el("p", {}, accept)); }
  const keys = { grade: "digits grade", preference: "← and → choose, ↓ is a tie", ranking: "arrows move, space lifts an item, t ties it with the one above, Enter sends" };
  dialog.replaceChildren(text, el("p", {}, `Keys: ${keys[me.campaign.kind]}; s skips, z takes the last answer back.`), accept);
  dialog.showModal();
}

async function next() {
  try { take(await call("POST", "/requests", {})); } catch (error) { trouble(error, next); }
}

function trouble(error, again) {
  if (error.type === "consent_needed") return guidelines(true);
  if (error.status === 401) return join();
  if (error.status === 403) return screen(el("p", {}, error.message));
  say(navigator.onLine ? "No answer; trying again." : "You are offline; answers are kept here.", true);
  later(Math.max(error.wait || 0, 3), again);
}

function take(found) {
  if (found.requests.length) return show(found.requests[0]);
  request = null;
  const words = { done: "Everything is judged. Thank you!", judged_all: "You have judged everything there is for you. Thank you!", budget: "The budget is used up. Thank you!", paused: "The campaign is paused; this page goes on by itself.", all_leased: "Others are working on what is left; this page goes on by itself." };
  screen(el("p", { className: "question" }, words[found.reason] ?? "Nothing to do at the moment."));
  footer(true);
  if (found.retry_after) later(Math.min(60, found.retry_after), next);
}

function show(one, answer = null) {
  clearTimeout(timer);
  request = one; old = answer; begun = performance.now(); busy = false;
  const head = [one.query.content ? el("p", { className: "query", dir: "auto" }, one.query.content) : null, el("p", { className: "question", id: "question" }, one.question)];
  if (one.kind === "ranking") screen(...head.filter(Boolean), ranking());
  else screen(...head.filter(Boolean), el("div", { className: "items" }, ...one.items.map((item) => el("section", { className: "item", "aria-label": `Item ${item.label.toUpperCase()}` }, one.items.length > 1 ? el("h2", {}, item.label.toUpperCase()) : null, content(item)))), choices());
  footer(true);
  clearInterval(beat);
  beat = setInterval(() => { if (request && document.visibilityState === "visible") call("POST", `/requests/${request.id}/extend`, {}).catch(() => {}); }, Math.max(5, me.campaign.lease_seconds / 3) * 1000);
}

function choices() {
  const button = (words, key, answer) => el("button", { type: "button", onclick: () => send(answer), "aria-keyshortcuts": key, ...(old && JSON.stringify(old) === JSON.stringify(answer) ? { "aria-pressed": "true", className: "main" } : {}) }, `${words} `, el("kbd", {}, key));
  const group = el("div", { className: "choices", role: "group", "aria-labelledby": "question" });
  if (request.kind === "grade") request.scale.forEach((name, grade) => group.append(button(name, digit(grade), { grade })));
  else {
    group.append(button("A", "←", { winner: "a" }));
    if (request.scale.ties) group.append(button("Tie", "↓", { winner: "tie" }));
    group.append(button("B", "→", { winner: "b" }));
  }
  return group;
}

function digit(grade) { return request.scale.length <= 9 ? String(grade + 1) : grade < 9 ? String(grade + 1) : String.fromCharCode(97 + grade - 9); }

// a ranking is a list of letters, each with a mark where it is tied with the one above
function ranking() {
  order = old ? old.order.flatMap((group) => group.map((label, place) => ({ label, tied: place > 0 }))) : request.items.map((item) => ({ label: item.label, tied: false }));
  const list = el("ol", { className: "order", "aria-labelledby": "question" });
  const draw = (focus) => {
    list.replaceChildren(...order.map((one, place) => {
      const item = request.items.find((other) => other.label === one.label);
      const tool = (words, sign, act, off) => el("button", { type: "button", "aria-label": `${words} ${one.label.toUpperCase()}`, disabled: off, onclick: () => { act(); draw(one.label); } }, sign);
      const row = el("li", { tabindex: "0", draggable: "true", className: one.tied ? "tied" : "", "aria-label": `Place ${place + 1}: item ${one.label.toUpperCase()}${one.tied ? ", tied with the one above" : ""}` },
        el("div", {}, content(item)), tool("Move up", "↑", () => move(place, -1), place === 0), tool("Move down", "↓", () => move(place, 1), place === order.length - 1), tool("Tie with the one above:", "=", () => { one.tied = !one.tied; }, place === 0));
      row.addEventListener("keydown", (event) => {
        if (event.target !== row) return;
        const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (by && (event.shiftKey || row.dataset.lifted)) { move(place, by); draw(one.label); lift(one.label); } else if (by) list.children[place + by]?.focus();
        else if (event.key === " ") { if (row.dataset.lifted) delete row.dataset.lifted; else lift(one.label); say(row.dataset.lifted ? `${one.label.toUpperCase()} lifted; arrows move it` : ""); }
        else if (event.key === "t" && place) { one.tied = !one.tied; draw(one.label); } else return;
        event.preventDefault(); event.stopPropagation();
      });
      row.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", one.label));
      row.addEventListener("dragover", (event) => event.preventDefault());
      row.addEventListener("drop", (event) => { event.preventDefault(); const from = order.findIndex((other) => other.label === event.dataTransfer.getData("text/plain")); if (from >= 0) { const [moved] = order.splice(from, 1); moved.tied = false; order.splice(place, 0, moved); order[0].tied = false; draw(moved.label); } });
      row.dataset.label = one.label;
      return row;
    }));
    list.querySelector(focus ? `[data-label="${focus}"]` : "li")?.focus({ preventScroll: true });
  };
  const lift = (label) => { list.querySelector(`[data-label="${label}"]`).dataset.lifted = "yes"; };
  queueMicrotask(() => draw());
  return el("div", {}, list, el("div", { className: "choices" }, el("button", { type: "button", className: "main", onclick: sendOrder }, "Send ", el("kbd", {}, "Enter"))));
}

function move(place, by) {
  const to = place + by;
  if (to < 0 || to >= order.length) return;
  [order[place], order[to]] = [order[to], order[place]];
  order[place].tied = order[to].tied = false;
}

function sendOrder() {
  const groups = [];
  for (const one of order) { if (one.tied && groups.length) groups.at(-1).push(one.label); else groups.push([one.label]); }
  send({ order: groups });
}

async function send(answer) {
  if (busy || !request) return;
  busy = true;
  const seconds = Math.round((performance.now() - begun) / 100) / 10;
  const row = { submission: crypto.randomUUID?.() ?? uuid(), request: request.id, answer, seconds };
  keep([...outbox(), row]);
  done.push(row.submission);
  request = null;
  for (const button of main.querySelectorAll("button")) button.disabled = true;
  say("Saving …");
  const found = await flush(row.submission);
  if (found) take(found); else if (!outbox().length) next(); else screen(el("p", { className: "question" }, "Your answer is kept on this device and sent as soon as there is a connection."));
}

function uuid() { return "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (c) => (c ^ (crypto.getRandomValues(new Uint8Array(1))[0] & (15 >> (c / 4)))).toString(16)); }

let flushing = null;
function flush(last = "") {
  const run = () => (navigator.locks ? navigator.locks.request("crowdrank-outbox", () => empty(last)) : empty(last));
  flushing = (flushing ?? Promise.resolve()).then(run, run);
  return flushing;
}

// sends what waits, the oldest first; an entry leaves the outbox only once the service has answered for good
async function empty(last) {
  let found = null;
  for (const row of outbox()) {
    try {
      const kept = await call("POST", "/judgments", { ...row, next: row.submission === last });
      found = kept.next ?? found;
      say("Saved.");
      if (!kept.replayed && me) me.n_answered += 1;
    } catch (error) {
      if (![400, 404, 409, 413, 422].includes(error.status)) {
        say(navigator.onLine ? "Not saved yet; trying again." : "You are offline; your answer is kept here.", true);
        later(Math.max(error.wait || 0, 3), async () => { await flush(); if (!outbox().length && !request) next(); });
        return null;
      }
      say(error.type === "already_answered" ? "Saved before." : `Not taken: ${error.message}`, error.type !== "already_answered");
    }
    keep(outbox().filter((other) => other.submission !== row.submission));
  }
  count();
  return found;
}

function count() { document.getElementById("count").textContent = me ? `${me.n_answered} judged${outbox().length ? `, ${outbox().length} waiting` : ""}` : ""; }

async function undo() {
  const last = done.at(-1);
  if (!last || busy) return;
  try {
    await flush();
    const found = await call("POST", `/judgments/${last}/withdraw`, {});
    done.pop(); me.n_answered -= 1; count();
    say("Taken back; answer again.");
    show(found.request, found.answer);
  } catch (error) {
    if (error.status === 404 || error.status === 409) done.pop();
    say(error.message, true);
  }
  footer(true);
}

function skip() {
  if (!request || busy) return;
  const text = el("input", { id: "why", maxlength: "500" });
  const one = request;
  const give = async (reason) => {
    dialog.close();
    try { await call("POST", `/requests/${one.id}/skip`, { reason, text: text.value }); say("Skipped."); next(); } catch (error) { say(error.message, true); }
  };
  const button = (reason, words) => el("button", { type: "button", onclick: () => give(reason) }, words);
  dialog.replaceChildren(el("h2", {}, "Why skip this?"), el("p", {}, el("label", { for: "why" }, "In your words, if you like"), " ", text),
    el("div", { className: "choices" }, button("unclear", "Unclear"), button("broken", "Broken"), button("conflict", "I am involved"), button("", "No reason"), el("button", { type: "button", onclick: () => dialog.close() }, "Back")));
  dialog.showModal();
}

document.getElementById("undo").addEventListener("click", undo);
document.getElementById("skip").addEventListener("click", skip);
document.getElementById("help").addEventListener("click", () => guidelines(false));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || /^(INPUT|TEXTAREA|SELECT|AUDIO)$/.test(event.target.tagName) || !me?.consented) return;
  const key = event.key;
  if (key === "z") undo();
  else if (key === "s") skip();
  else if (key === "?") guidelines(false);
  else if (!request) return;
  else if (request.kind === "grade") { const grade = request.scale.findIndex((_, place) => digit(place) === key); if (grade < 0) return; send({ grade }); }
  else if (request.kind === "preference") { const winner = { ArrowLeft: "a", ArrowRight: "b", ArrowDown: request.scale.ties ? "tie" : undefined }[key]; if (!winner) return; send({ winner }); }
  else if (key === "Enter" && event.target.tagName !== "BUTTON") sendOrder();
  else return;
  event.preventDefault();
});
addEventListener("online", () => flush().then(() => { if (!request) next(); }));
addEventListener("hashchange", () => { if (location.hash.startsWith("#cri_")) location.reload(); });
start();
