// The annotator's page: one request at a time; an answer stays in the outbox until the service has acknowledged it.

import { call, content, el, markdown, outbox, keep, uuid } from "/static/kit.js";
import { ranking } from "/static/ranking.js";

const part = (id) => document.getElementById(id);
const main = part("main"), status = part("status"), dialog = part("dialog"), bar = part("bar");
const ANSWERED = "crowdrank.answered";
const KEYS = { grade: "digits grade; in the row of answers arrows go from one to the next and Enter gives it", preference: "1 and 2 choose A and B, 0 is a tie; in the row of answers arrows go from one to the next and Enter gives it", ranking: "↑ and ↓ go from item to item, space lifts one so that they move it, t ties it with the one above, Enter sends" };
const REASONS = {
  choosing: "More is being chosen; this page goes on by itself.",
  done: "Everything is judged. Thank you!", judged_all: "You have judged everything there is for you. Thank you!",
  budget: "The budget is used up. Thank you!", paused: "The campaign is paused; this page goes on by itself.",
  all_leased: "Others are working on what is left; this page goes on by itself.",
};
const SETTLE = 300, UNDO_SECONDS = 5, LISTEN = "Play each sound first.";
let ready = true, away = 0, me = null, request = null, begun = 0, old = null, busy = false, timer = 0, beat = 0, failures = 0, sendOrder = null, gone = false;
const done = [];

function say(text, bad = false) { status.textContent = text; status.className = bad ? "bad" : ""; part("back").disabled = true; }
// what was stored stands for some seconds, with a way back
function sayStored(words) {
  const text = `Saved: ${words}`;
  say(text);
  part("back").disabled = false;
  setTimeout(() => { if (status.textContent === text) say(""); }, UNDO_SECONDS * 1000);
}
function later(seconds, what) { clearTimeout(timer); timer = setTimeout(what, seconds * 1000); }
// each failure in a row doubles the wait, up to a minute
function patience(error) { failures += 1; return Math.max(error.wait || 0, Math.min(60, 2 ** failures)); }
function mine() { return outbox().filter((row) => row.who === undefined || row.who === me?.name); }

function screen(nodes, answers = []) {
  main.replaceChildren(...nodes.filter(Boolean));
  part("answers").replaceChildren(...answers);
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function footer(shown) {
  bar.hidden = !shown;
  part("skip").disabled = !request;
  part("undo").disabled = !done.length;
}

function count() {
  const waiting = mine().length;
  part("count").textContent = me ? `${me.n_answered} judged${waiting ? `, ${waiting} waiting` : ""}` : "";
}

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
    if (error.status === 403) return leave(error);
    say("No connection; trying again.", true);
    return later(patience(error), start);
  }
  failures = 0;
  gone = false;
  say("");
  sessionStorage.removeItem("crowdrank.invite");
  part("title").textContent = document.title = me.campaign.name;
  remember();
  if (!me.consented) return guidelines(true);
  await flush();
  return next();
}

function leave(error) {
  request = null;
  gone = true;
  footer(false);
  screen([el("p", { className: "question" }, error.message)]);
}

function join() {
  request = null;
  gone = true;
  footer(false);
  const invite = sessionStorage.getItem("crowdrank.invite");
  if (!invite) return screen([el("p", { className: "question" }, "Open the invite link that you were sent to take part.")]);
  const name = el("input", { id: "name", maxlength: "80", autocomplete: "nickname" });
  const form = el("form", { className: "item", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await call("POST", "/join", { invite, ...(name.value.trim() ? { name: name.value } : {}) });
      await start();
    } catch (error) { say(error.message, true); }
  } }, el("p", {}, el("label", { for: "name" }, "Your name, or nothing to stay a number")), el("div", { className: "choices bar" }, name, el("button", { className: "main" }, "Take part")));
  screen([form]);
  name.focus();
}

function guidelines(first) {
  const text = el("article", { className: first ? "item" : "", dir: "auto" }, markdown(me.campaign.guidelines || "There are no guidelines."));
  if (first) {
    footer(false);
    return screen([text, el("p", {}, el("button", { className: "main", type: "button", onclick: consent }, "I have read this and take part"))]);
  }
  dialog.setAttribute("aria-label", "Help");
  dialog.replaceChildren(el("h2", {}, "Guidelines"), text, el("h2", {}, "Keys"), el("p", {}, `${KEYS[me.campaign.kind]}; s skips, z takes the last answer back, ? opens this.`),
    el("p", { className: "choices" }, el("button", { className: "main", type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}

async function consent() {
  try { await call("POST", "/consent", {}); me.consented = true; } catch (error) { return say(error.message, true); }
  await flush();
  return next();
}

async function next() {
  try {
    take(await call("POST", "/requests", {}));
    failures = 0;
  } catch (error) { trouble(error, next); }
}

function trouble(error, again) {
  if (error.type === "consent_needed") { me.consented = false; return guidelines(true); }
  if (error.status === 401) return join();
  if (error.status === 403) return leave(error);
  say(navigator.onLine ? "No answer; trying again." : "You are offline; answers are kept here.", true);
  return later(patience(error), again);
}

function take(found) {
  if (found.requests.length) return show(found.requests[0]);
  request = null;
  busy = false;
  screen([el("p", { className: "question" }, REASONS[found.reason] ?? "Nothing to do at the moment.")]);
  footer(true);
  if (found.retry_after) later(Math.min(60, found.retry_after), next);
}

function show(one, answer = null) {
  clearTimeout(timer);
  request = one; old = answer; begun = performance.now(); busy = false; sendOrder = null;
  const head = [one.query.content ? el("p", { className: "query", dir: "auto" }, one.query.content) : null, el("p", { className: "question", id: "question", dir: "auto" }, one.question)];
  if (one.kind === "ranking") {
    const made = ranking(one, old, say, send);
    sendOrder = made.send;
    screen([...head, made.list], [made.button]);
    made.list.firstChild.focus({ preventScroll: true });
  } else screen([...head, el("div", { className: "items" }, ...one.items.map((item) => card(item, one.items.length > 1)))], [choices()]);
  footer(true);
  settle(one);
  clearInterval(beat);
  beat = setInterval(extend, Math.max(5, me.campaign.lease_seconds / 3) * 1000);
}

// a new request takes no answer before it can have been seen: not at once, not before its pictures and pages are there
async function settle(one) {
  const there = (node) => new Promise((seen) => { if (node.complete) seen(); else for (const name of ["load", "error"]) node.addEventListener(name, seen, { once: true }); });
  ready = false;
  part("answers").setAttribute("aria-busy", "true");
  for (const sound of main.querySelectorAll("audio")) for (const name of ["playing", "error"]) sound.addEventListener(name, () => { sound.dataset.heard = "yes"; }, { once: true });
  await Promise.all([new Promise((passed) => { setTimeout(passed, SETTLE); }), ...[...main.querySelectorAll("img, iframe")].map(there)]);
  if (request !== one) return;
  ready = true;
  part("answers").removeAttribute("aria-busy");
}

// an answer in the words of the page
function worded(answer) {
  if (request.kind === "grade") return request.scale[answer.grade];
  if (request.kind === "ranking") return answer.order.map((group) => group.join(" = ")).join(" over ").replace(/\b[a-z]\b/g, (label) => label.toUpperCase());
  return { a: "A over B", b: "B over A", tie: "a tie" }[answer.winner];
}

function card(item, named) {
  const name = item.label.toUpperCase();
  return el("section", { className: "item", "aria-label": `Item ${name}` }, named ? el("h2", {}, name) : null, content(item));
}

function extend() {
  if (request && document.visibilityState === "visible") call("POST", `/requests/${request.id}/extend`, {}).catch(() => {});
}

// one key, one touch or Enter answers; arrows and space only go from one answer to another; after undo the old answer is marked
function choices() {
  const choice = (words, key, answer) => {
    const chosen = old && JSON.stringify(old) === JSON.stringify(answer);
    return el("button", { type: "button", role: "radio", "aria-checked": String(Boolean(chosen)), "aria-keyshortcuts": key, tabindex: "-1", className: chosen ? "main" : "", onclick: () => send(answer) }, words, " ", el("kbd", { "aria-hidden": "true" }, key));
  };
  const group = el("div", { className: "choices", role: "radiogroup", "aria-labelledby": "question", onkeydown: rove, onkeyup: (event) => { if (event.key === " ") event.preventDefault(); } });
  if (request.kind === "grade") group.append(...request.scale.map((name, grade) => choice(name, digit(grade), { grade })));
  else {
    group.append(choice("A is better", "1", { winner: "a" }));
    if (request.scale.ties) group.append(choice("Tie", "0", { winner: "tie" }));
    group.append(choice("B is better", "2", { winner: "b" }));
  }
  (group.querySelector("[aria-checked=true]") ?? group.firstChild).setAttribute("tabindex", "0");
  return group;
}

function rove(event) {
  const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, " ": 0 }[event.key];
  if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const all = [...event.currentTarget.children], to = all[(all.indexOf(event.target) + by + all.length) % all.length];
  for (const one of all) {
    one.setAttribute("aria-checked", String(one === to));
    one.setAttribute("tabindex", one === to ? "0" : "-1");
    one.className = one === to ? "main" : "";
  }
  to.focus();
}

// ten grades and more go on with letters, without those that mean something else
function digit(grade) { return grade < 9 ? String(grade + 1) : "abcdefghijklmnopqrtuvwxy"[grade - 9]; }

async function send(answer) {
  if (busy || !request || !ready) return null;
  if (main.querySelector("audio:not([data-heard])")) { say(LISTEN, true); return null; }
  busy = true;
  const row = { submission: uuid(), request: request.id, answer, seconds: Math.round((performance.now() - begun) / 100) / 10, who: me.name, words: worded(answer) };
  keep([...outbox(), row]);
  done.push(row.submission);
  request = null;
  for (const button of part("answers").querySelectorAll("button")) button.disabled = true;
  say("Saving …");
  const found = await flush(row.submission);
  if (gone) return null;
  if (found) return take(found);
  if (!mine().length) return next();
  busy = false;
  screen([el("p", { className: "question" }, "Your answer is kept on this device and sent as soon as there is a connection.")]);
  return footer(true);
}

let flushing = null;
function flush(last = "") {
  const run = () => (navigator.locks ? navigator.locks.request("crowdrank-outbox", () => empty(last)) : empty(last));
  flushing = (flushing ?? Promise.resolve()).then(run, run);
  return flushing;
}

// sends what waits, the oldest first; an entry leaves the outbox only once the service has answered for good
async function empty(last) {
  let found = null;
  for (const { who, words, ...row } of mine()) {
    try {
      const kept = await call("POST", "/judgments", { ...row, next: row.submission === last });
      found = kept.next ?? found;
      failures = 0;
      sayStored(words);
      if (!kept.replayed) me.n_answered += 1;
    } catch (error) {
      if (![400, 404, 409, 413, 422].includes(error.status)) return wait(error);
      refused(row, error);
    }
    keep(outbox().filter((other) => other.submission !== row.submission));
    try { localStorage.setItem(ANSWERED, row.request); } catch { /* other tabs find out when they answer */ }
  }
  count();
  return found;
}

function refused(row, error) {
  const before = error.type === "already_answered";
  say(before ? "Saved before." : `Not taken: ${error.message}`, !before);
  const place = done.indexOf(row.submission), other = error.detail?.submission;
  if (place >= 0) done.splice(place, 1, ...(before && other && !done.includes(other) ? [other] : []));
}

function wait(error) {
  count();
  if (error.status === 401) { join(); say("This browser is no longer known; open your invite link to send what waits.", true); } else if (error.status === 403) { leave(error); } else {
    say(navigator.onLine ? "Not saved yet; trying again." : "You are offline; your answer is kept here.", true);
    later(patience(error), goOn);
  }
  return null;
}

async function goOn() {
  await flush();
  if (!gone && !mine().length && !request) next();
}

// what this annotator has answered, in whichever tab
function remember() {
  done.splice(0, done.length, ...me.recent.map((one) => one.submission).reverse());
  count();
}

async function undo(again = true) {
  if (busy || !done.length) return null;
  busy = true;
  await flush();
  const last = done.at(-1);
  busy = false;
  if (!last || mine().length) return null;
  try {
    const found = await call("POST", `/judgments/${last}/withdraw`, {});
    done.pop();
    me.n_answered -= 1;
    count();
    say("Taken back; answer again.");
    return show(found.request, found.answer);
  } catch (error) {
    if (error.status === 404 && again) {
      try { me = await call("GET", "/me"); remember(); return undo(false); } catch { /* said below */ }
    }
    if (error.status === 404 || error.status === 409) done.pop();
    say(error.message, true);
    return footer(true);
  }
}

function skip() {
  if (!request || busy || !ready) return;
  const text = el("input", { id: "why", maxlength: "500" });
  const one = request;
  const give = async (reason) => {
    dialog.close();
    try { await call("POST", `/requests/${one.id}/skip`, { reason, text: text.value }); } catch (error) { return say(error.message, true); }
    say("Skipped.");
    return next();
  };
  const button = (reason, words) => el("button", { type: "button", onclick: () => give(reason) }, words);
  dialog.setAttribute("aria-label", "Skip");
  dialog.replaceChildren(el("h2", {}, "Why skip this?"), el("p", {}, el("label", { for: "why" }, "In your words, if you like"), " ", text),
    el("div", { className: "choices" }, button("unclear", "Unclear"), button("broken", "Broken"), button("conflict", "I am involved"), button("", "No reason"), el("button", { type: "button", onclick: () => dialog.close() }, "Back")));
  dialog.showModal();
}

function pressed(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key === "z") return ready || !request ? undo() : null;
  if (key === "s") return skip();
  if (key === "?") return guidelines(false);
  if (!request) return false;
  if (request.kind === "grade") {
    const grade = request.scale.findIndex((_, place) => digit(place) === key);
    return grade < 0 ? false : send({ grade });
  }
  if (request.kind === "preference") {
    const winner = { 1: "a", 2: "b", 0: request.scale.ties ? "tie" : undefined }[key];
    return winner ? send({ winner }) : false;
  }
  return key === "Enter" && event.target.tagName !== "BUTTON" ? sendOrder() : false;
}

part("undo").addEventListener("click", () => undo());
part("skip").addEventListener("click", skip);
part("help").addEventListener("click", () => guidelines(false));
part("back").addEventListener("click", () => undo());
document.addEventListener("keydown", (event) => {
  // a key that is held does nothing again, nor does a button that has the focus
  if (event.repeat) { if (event.target.tagName === "BUTTON" && ["Enter", " "].includes(event.key)) event.preventDefault(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || /^(INPUT|TEXTAREA|SELECT|AUDIO)$/.test(event.target.tagName) || !me?.consented) return;
  if (pressed(event) !== false) event.preventDefault();
});
// a click into a page that is an item would take the keys with it
addEventListener("blur", () => setTimeout(() => { if (document.querySelector("iframe:hover") === document.activeElement) main.focus({ preventScroll: true }); }));
// what passes while the page is out of sight is not time spent on a request
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") away = performance.now();
  else begun += performance.now() - Math.max(away, begun);
});
addEventListener("online", () => { if (me?.consented) goOn(); });
// what another tab has answered is not asked here again
addEventListener("storage", (event) => { if (me) count(); if (event.key === ANSWERED && request && event.newValue === String(request.id) && !busy) next(); });
addEventListener("hashchange", () => { if (location.hash.startsWith("#cri_")) location.reload(); });
start();
