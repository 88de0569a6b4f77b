// The annotator's page: one request at a time; an answer stays in the outbox until the service has acknowledged it.

import { call, el, outbox, keep, uuid } from "/static/kit.js";
import { markScreen, wideFor } from "/static/screen.js";
import { content, direction, heard } from "/static/content.js";
import { markdown } from "/static/markdown.js";
import { ranking } from "/static/ranking.js";
import { form } from "/static/questions.js";
import { past } from "/static/history.js";
import { question, speak, t } from "/static/words.js";

const part = (id) => document.getElementById(id);
const main = part("main"), status = part("status"), dialog = part("dialog"), bar = part("bar");
const ANSWERED = "crowdrank.answered", SETTLE = 300, UNDO_SECONDS = 5, HOUR = 3600;
// what panels call a person and a visit in the address that they send people to
const PANELS = { external: ["PROLIFIC_PID", "workerId", "participantId", "participant", "pid"], session: ["SESSION_ID", "assignmentId", "session"] };
let ready = true, away = 0, me = null, request = null, begun = 0, old = null, busy = false, timer = 0, beat = 0, failures = 0, sendOrder = null, gone = false, remark = "", replacing = null, practice = null, worked = 0;
const done = [];

function say(text, bad = false) { status.textContent = text; status.className = bad ? "bad" : ""; part("back").disabled = true; }
// what was stored stands for some seconds, with a way back
function sayStored(words) {
  const text = t("saved", { words });
  say(text);
  part("back").disabled = false;
  setTimeout(() => { if (status.textContent === text) say(""); }, UNDO_SECONDS * 1000);
}
function later(seconds, what) { clearTimeout(timer); timer = setTimeout(what, seconds * 1000); }
// each failure in a row doubles the wait, up to a minute
function patience(error) { failures += 1; return Math.max(error.wait || 0, Math.min(60, 2 ** failures)); }
function mine() { return outbox().filter((row) => row.who === undefined || row.who === me?.name); }
// small things that a browser may remember for a person, and that may be lost
function recall(name, otherwise) { try { return JSON.parse(localStorage.getItem(`crowdrank.${name}`)) ?? otherwise; } catch { return otherwise; } }
function note(name, value) { try { localStorage.setItem(`crowdrank.${name}`, JSON.stringify(value)); } catch { /* until the page is left */ } }

function screen(nodes, answers = []) {
  main.replaceChildren(...nodes.filter(Boolean));
  part("answers").replaceChildren(...answers);
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function footer(shown) {
  bar.hidden = !shown;
  part("skip").disabled = part("comment").disabled = !request || Boolean(practice);
  part("undo").disabled = !done.length || Boolean(practice);
  part("history").disabled = Boolean(practice);
}

const day = () => new Date().toLocaleDateString("en-CA");
const today = () => { const kept = recall(`day.${me.campaign.name}`, {}); return kept.day === day() ? kept : { day: day(), seconds: 0, n: 0 }; };

// how far one is, by the campaign's number or by one's own goal for the day
function count() {
  if (!me) return;
  const waiting = mine().length, now = today(), goal = me.campaign.per_person || recall("goal", 0), n = me.campaign.per_person ? me.n_answered : now.n;
  const parts = [me.campaign.per_person ? t("judged_of", { n: me.n_answered, goal }) : t("judged", { n: me.n_answered }), waiting ? t("waiting", { n: waiting }) : ""];
  part("count").replaceChildren(el("span", { id: "total" }, parts.filter(Boolean).join(", ")), ...(now.seconds >= 60 ? [" · ", el("span", {}, t("today", { minutes: Math.round(now.seconds / 60) }))] : []));
  part("progress").hidden = !goal;
  part("progress").value = goal ? Math.min(1, n / goal) : 0;
  part("meter").hidden = false;
}

function spend(seconds) {
  const now = today();
  note(`day.${me.campaign.name}`, { day: now.day, seconds: now.seconds + seconds, n: now.n + 1 });
  worked += seconds;
  const goal = recall("goal", 0);
  if (goal && !me.campaign.per_person && now.n + 1 === goal) banner(t("goal_reached"));
  if (worked >= HOUR) { worked = 0; banner(t("break")); }
}

let news = null;
function banner(text) {
  news = el("p", { className: "banner", role: "status" }, text, el("button", { type: "button", onclick: () => { news.remove(); news = null; } }, t("break_on")));
}

async function start() {
  const token = location.hash.slice(1), asked = new URLSearchParams(location.search);
  await speak("");
  if (/^cr[ia]_/.test(token)) {
    const panel = Object.fromEntries(Object.entries(PANELS).map(([name, keys]) => [name, keys.map((key) => asked.get(key)).find(Boolean) ?? ""]));
    history.replaceState(null, "", location.pathname);
    try { sessionStorage.setItem("crowdrank.invite", token); sessionStorage.setItem("crowdrank.panel", JSON.stringify(panel)); } catch { /* this page alone */ }
    if (token.startsWith("cra_")) { try { await call("POST", "/join", { invite: token }); } catch (error) { return leave(error); } }
  }
  try {
    me = await call("GET", "/me");
  } catch (error) {
    if (error.status === 401) return join();
    if (error.status === 403) return leave(error);
    say(t("no_connection"), true);
    return later(patience(error), start);
  }
  failures = 0;
  gone = false;
  say("");
  sessionStorage.removeItem("crowdrank.invite");
  await speak(me.campaign.language);
  part("title").textContent = document.title = me.campaign.name;
  remember();
  if (me.message) banner(me.message);
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

async function join() {
  request = null;
  gone = true;
  footer(false);
  part("meter").hidden = true;
  const invite = sessionStorage.getItem("crowdrank.invite"), panel = JSON.parse(sessionStorage.getItem("crowdrank.panel") ?? "{}");
  if (!invite) return screen([el("p", { className: "question" }, t("join_need"))]);
  let about;
  try { about = await call("POST", "/welcome", { invite }); } catch (error) { return leave(error); }
  await speak(about.language);
  part("title").textContent = document.title = about.name;
  const name = el("input", { id: "name", maxlength: "80", autocomplete: "nickname" });
  const asks = !about.named && !panel.external;
  const take = async (event) => {
    event.preventDefault();
    try {
      await call("POST", "/join", { invite, ...(panel.external ? panel : {}), ...(asks && name.value.trim() ? { name: name.value } : {}) });
      await start();
    } catch (error) { say(error.message, true); }
  };
  const facts = [["what", t(`what_${about.kind}`)], ["who_asks", about.asked_by], ["how_long", about.duration], ["how_many", about.per_person ? t("up_to", { n: about.per_person }) : ""], ["pay", about.pay]].filter(([, words]) => words);
  screen([el("div", { className: "sheet-page" }, el("p", { className: "question", dir: "auto" }, about.name), about.about ? el("div", { dir: "auto" }, markdown(about.about)) : null,
    el("dl", { className: "facts" }, ...facts.flatMap(([key, words]) => [el("dt", {}, t(key)), el("dd", { dir: "auto" }, words)])),
    about.used_up ? el("p", { className: "bad" }, t("used_up")) : null,
    el("form", { className: "item", onsubmit: take }, asks ? el("p", {}, el("label", { for: "name" }, t("join_name"))) : null, el("div", { className: "choices bar" }, asks ? name : null, el("button", { className: "main" }, t("join")))), el("p", { className: "dim" }, t("privacy")))]);
  if (asks) name.focus();
}

function open(label, large, ...nodes) {
  dialog.setAttribute("aria-label", label);
  dialog.className = large ? "large" : "";
  dialog.replaceChildren(...nodes.filter(Boolean));
  if (!dialog.open) dialog.showModal();
}
const close = () => el("p", { className: "choices" }, el("button", { className: "main", type: "button", onclick: () => dialog.close() }, t("close")));

function guidelines(first) {
  const text = el("article", { className: first ? "item" : "", dir: "auto" }, markdown(me.campaign.guidelines || t("no_guidelines")));
  if (first) {
    footer(false);
    return screen([el("div", { className: "sheet-page" }, el("h2", {}, t("guidelines")), text, el("p", {}, el("button", { className: "main", type: "button", onclick: consent }, t("consent"))))]);
  }
  const goal = el("input", { id: "goal", type: "number", min: "0", max: "10000", value: String(recall("goal", 0) || ""), placeholder: t("goal_none"), onchange: () => { note("goal", Math.max(0, Math.round(Number(goal.value)) || 0)); count(); } });
  const link = el("p", {}, el("button", { type: "button", onclick: async () => {
    try { link.replaceChildren(el("code", {}, (await call("POST", "/me/link", {})).link)); } catch (error) { link.replaceChildren(error.message); }
  } }, t("show_link")));
  const quality = me.campaign.show_quality ? el("p", {}, `${t("quality")}: ${me.quality == null ? t("not_measured") : me.quality.toFixed(2)}`) : null;
  return open(t("help"), false, el("h2", {}, t("guidelines")), text, el("h2", {}, t("keys")), el("p", {}, `${t(`keys_${me.campaign.kind}`)}; ${t("keys_all")}`), quality,
    me.campaign.per_person ? null : el("p", {}, el("label", { for: "goal" }, t("goal")), " ", goal), el("h2", {}, t("personal_link")), el("p", { className: "dim" }, t("personal_link_why")), link, close());
}

async function consent() {
  try { await call("POST", "/consent", {}); me.consented = true; } catch (error) { return say(error.message, true); }
  await flush();
  return next();
}

async function next() {
  replacing = null;
  try {
    if (me.campaign.training && !me.trained) return await practise();
    take(await call("POST", "/requests", {}));
    failures = 0;
  } catch (error) { trouble(error, next); }
  return null;
}

function trouble(error, again) {
  if (error.type === "consent_needed") { me.consented = false; return guidelines(true); }
  if (error.type === "training_needed") { me.trained = false; return next(); }
  if (error.status === 401) return join();
  if (error.status === 403) return leave(error);
  say(t(navigator.onLine ? "no_answer" : "offline"), true);
  return later(patience(error), again);
}

const ENDS = { goal: "goal_done" };
function take(found) {
  if (found.requests.length) return show(found.requests[0]);
  request = null;
  busy = false;
  wideFor(null);
  const words = t(ENDS[found.reason] ?? found.reason ?? "nothing");
  if (found.retry_after) screen([el("p", { className: "question" }, words)]);
  else screen([finished(words, found.completion)]);
  footer(true);
  if (found.retry_after) later(Math.min(60, found.retry_after), next);
  return null;
}

// the last page: what was done, thanks, and the way back to where one came from
function finished(words, completion) {
  const now = today(), card = (value, name) => el("li", {}, el("b", {}, String(value)), el("span", {}, name));
  return el("div", { className: "sheet-page" }, el("p", { className: "question" }, words),
    me.n_answered ? el("ul", { className: "cards" }, card(me.n_answered, t("total")), now.seconds >= 60 ? card(`${Math.round(now.seconds / 60)} min`, t("time_in_all")) : null) : null,
    ...(completion?.code ? [el("p", { className: "kicker" }, t("completion_code")), el("p", { className: "choices bar" }, el("span", { className: "code" }, completion.code), el("button", { type: "button", onclick: () => navigator.clipboard?.writeText(completion.code).then(() => say(t("copied"))) }, t("copy")))] : []),
    completion?.url ? el("p", {}, el("a", { className: "button", href: completion.url, rel: "noopener" }, t("way_back"))) : null);
}

function asked(one) {
  return one.query.content ? el("section", { className: "query", dir: direction(one.query.content), tabindex: "0", "aria-label": question(one.question) }, one.query.content_type === "markdown" ? markdown(one.query.content) : el("div", { className: "text" }, one.query.content)) : null;
}

function show(one, answer = null, above = []) {
  clearTimeout(timer);
  request = one; old = answer; begun = performance.now(); busy = false; sendOrder = null; remark = "";
  const head = [news, ...above, replacing ? el("p", { className: "banner" }, t("changing"), el("button", { type: "button", onclick: next }, t("cancel"))) : null, asked(one), one.questions ? null : el("p", { className: "question", id: "question", dir: "auto" }, question(one.question))];
  const items = () => el("div", { className: one.items.length === 2 ? "items pair" : "items" }, ...one.items.map((item) => card(item, one.items.length > 1)));
  if (one.questions) {
    const made = form(one, old, { say, send });
    sendOrder = made.send;
    screen([...head, made.list ?? items(), made.fields], [made.button]);
  } else if (one.kind === "ranking") {
    const made = ranking(one, old, say, send);
    sendOrder = made.send;
    screen([...head, made.list], [made.button]);
    made.list.firstChild.focus({ preventScroll: true });
  } else screen([...head, items()], [choices()]);
  wideFor(one);
  if (one.items.length === 2) markScreen(main, recall, note, say);
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
  await Promise.all([new Promise((passed) => { setTimeout(passed, SETTLE); }), ...[...main.querySelectorAll("img:not([loading=lazy]), iframe")].map(there)]);
  if (request !== one) return;
  ready = true;
  part("answers").removeAttribute("aria-busy");
}

// whether every sound was played as far as the campaign wants
function unheard() {
  const share = me.campaign.listen, sounds = [...main.querySelectorAll("audio")];
  if (sounds.some((one) => !one.dataset.heard)) return t("listen_first");
  return share && sounds.some((one) => heard(one) < share - 0.02) ? t("listen_share", { share: Math.round(share * 100) }) : "";
}

// an answer in the words of the page
export function worded(one, answer) {
  if (answer.cant_tell) return t("cant_tell");
  if (answer.answers) return Object.values(answer.answers).map((value) => worded(one, value)).join(", ").slice(0, 80);
  if ("grade" in answer) return String(one.scale?.[answer.grade] ?? answer.grade);
  if ("choice" in answer) return [answer.choice].flat().join(" + ");
  if ("text" in answer) return answer.text.slice(0, 40);
  if ("value" in answer) return String(answer.value);
  if (answer.order) return answer.order.map((group) => group.join(" = ")).join(` ${t("over")} `).replace(/\b[a-z]\b/g, (label) => label.toUpperCase());
  const words = t({ a: "a_over_b", b: "b_over_a", tie: "a_tie" }[answer.winner]);
  return answer.strength ? t("by", { words, strength: one.scale?.strength?.[answer.strength - 1] ?? answer.strength }) : words;
}

function card(item, named) {
  const name = item.label.toUpperCase();
  return el("section", { className: "item", "aria-label": t("item", { label: name }) }, named ? el("h2", {}, name) : null, el("div", { className: "pane" }, content(item)));
}

function extend() {
  if (request && !practice && document.visibilityState === "visible") call("POST", `/requests/${request.id}/extend`, {}).catch(() => {});
}

// one key, one touch or Enter answers; arrows and space only go from one answer to another; after undo the old answer is marked
function choices() {
  const choice = (words, key, answer) => {
    const chosen = old && JSON.stringify(old) === JSON.stringify(answer);
    return el("button", { type: "button", role: "radio", "aria-checked": String(Boolean(chosen)), "aria-keyshortcuts": key, tabindex: "-1", className: chosen ? "main" : "", onclick: () => send(answer) }, words, " ", el("kbd", { "aria-hidden": "true" }, key));
  };
  const group = el("div", { className: "choices", role: "radiogroup", "aria-labelledby": "question", onkeydown: rove, onkeyup: (event) => { if (event.key === " ") event.preventDefault(); } });
  group.append(...answersOf(request).map(([words, key, answer]) => choice(words, key, answer)));
  (group.querySelector("[aria-checked=true]") ?? group.firstChild).setAttribute("tabindex", "0");
  return group;
}

// what may be answered to a request of one question: words, key and answer; with strengths from much better A to much better B
function answersOf(one) {
  const rows = [];
  if (one.kind === "grade") rows.push(...one.scale.map((name, grade) => [name, digit(grade), { grade }]));
  else if (one.scale.strength?.length) {
    const words = one.scale.strength, side = (winner) => words.map((name, place) => [`${winner.toUpperCase()}: ${name}`, "", { winner, strength: place + 1 }]);
    rows.push(...side("a").reverse(), ...(one.scale.ties ? [[t("tie"), "", { winner: "tie" }]] : []), ...side("b"));
    for (const [place, row] of rows.entries()) row[1] = digit(place);
  } else rows.push([t("a_better"), "1", { winner: "a" }], ...(one.scale.ties ? [[t("tie"), "0", { winner: "tie" }]] : []), [t("b_better"), "2", { winner: "b" }]);
  if (one.cant_tell) rows.push([t("cant_tell"), "x", { cant_tell: true }]);
  return rows;
}

function rove(event) {
  const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, " ": 0 }[event.key];
  if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  const all = [...event.currentTarget.children], turn = document.documentElement.dir === "rtl" && /Left|Right/.test(event.key) ? -by : by, to = all[(all.indexOf(event.target) + turn + all.length) % all.length];
  for (const one of all) {
    one.setAttribute("aria-checked", String(one === to));
    one.setAttribute("tabindex", one === to ? "0" : "-1");
    one.className = one === to ? "main" : "";
  }
  to.focus();
}

// ten grades and more go on with letters, without those that mean something else
function digit(grade) { return grade < 9 ? String(grade + 1) : "abdefgijklmnopqrtuvwy"[grade - 9] ?? ""; }

async function send(answer) {
  if (busy || !request || !ready) return null;
  const missing = unheard();
  if (missing) { say(missing, true); return null; }
  busy = true;
  const one = request, seconds = Math.round((performance.now() - begun) / 100) / 10;
  if (practice) return practised(one, answer);
  const row = { submission: uuid(), request: one.id, answer, seconds, who: me.name, words: worded(one, answer), ...(remark ? { comment: remark } : {}), ...(replacing ? { replaces: replacing } : {}) };
  keep([...outbox(), row]);
  done.push(row.submission);
  request = null;
  spend(seconds);
  for (const button of part("answers").querySelectorAll("button")) button.disabled = true;
  say(t("saving"));
  const found = await flush(row.submission);
  if (gone) return null;
  if (found) return take(found);
  if (!mine().length) return next();
  busy = false;
  screen([el("p", { className: "question" }, t("kept_here"))]);
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
      if (kept.feedback) checked(kept.feedback);
      if (!kept.replayed && !row.replaces) me.n_answered += 1;
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

// the owner may want people to learn from items whose answer is known
function checked(told) {
  const words = told.right ? t("check_right") : t("check_wrong", { words: worded(told, told.expected) });
  news = el("section", { className: `feedback ${told.right ? "right" : "wrong"}`, role: "status" }, el("p", {}, words), told.explanation ? markdown(told.explanation) : null);
}

function refused(row, error) {
  const before = error.type === "already_answered";
  say(before ? t("saved_before") : t("not_taken", { why: error.message }), !before);
  const place = done.indexOf(row.submission), other = error.detail?.submission;
  if (place >= 0) done.splice(place, 1, ...(before && other && !done.includes(other) ? [other] : []));
}

function wait(error) {
  count();
  if (error.status === 401) { join(); say(t("unknown_browser"), true); } else if (error.status === 403) { leave(error); } else {
    say(t(navigator.onLine ? "not_saved" : "offline"), true);
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
  if (busy || !done.length || practice) return null;
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
    say(t("taken_back"));
    replacing = null;
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
  if (!request || busy || !ready || practice || replacing) return;
  const text = el("input", { id: "why", maxlength: "500" });
  const one = request;
  const give = async (reason) => {
    dialog.close();
    try { await call("POST", `/requests/${one.id}/skip`, { reason, text: text.value }); } catch (error) { return say(error.message, true); }
    say(t("skipped"));
    return next();
  };
  const button = (reason, words) => el("button", { type: "button", onclick: () => give(reason) }, words);
  open(t("skip"), false, el("h2", {}, t("why_skip")), el("p", {}, el("label", { for: "why" }, t("own_words")), " ", text),
    el("div", { className: "choices" }, button("unclear", t("unclear")), button("broken", t("broken")), button("conflict", t("involved")), button("", t("no_reason")), el("button", { type: "button", onclick: () => dialog.close() }, t("back"))));
}

// a remark goes with the answer; one on an earlier answer is kept at once
function comment(of = null) {
  if (!of && (!request || practice)) return;
  const text = el("textarea", { id: "remark", maxlength: "2000", rows: "4" });
  text.value = of ? of.comment : remark;
  const keepIt = async () => {
    if (of) {
      try { of.comment = (await call("POST", `/judgments/${of.submission}/comment`, { comment: text.value })).comment; } catch (error) { return say(error.message, true); }
    } else remark = text.value.trim();
    dialog.close();
    say(t(of ? "comment_kept" : "comment_goes"));
    return of ? look() : null;
  };
  open(t("comment"), false, el("h2", {}, t("comment")), el("p", {}, el("label", { for: "remark" }, t("comment_what"))), text,
    el("p", { className: "choices" }, el("button", { className: "main", type: "button", onclick: keepIt }, t("comment_keep")), el("button", { type: "button", onclick: () => dialog.close() }, t("back"))));
  text.focus();
}

// all own answers; one that is changed is asked again and takes the place of the former
function look() {
  if (!me || practice) return;
  open(t("history"), true, ...past({ call, worded, comment, close, change: async (one) => {
    dialog.close();
    try {
      const again = await call("GET", `/requests/${one.request.id}`);
      replacing = one.submission;
      show(again, one.answer);
      remark = one.comment;
    } catch (error) { say(error.message, true); }
  } }));
}

// practice: items whose answer is known, with what was expected after each
async function practise() {
  const found = await call("POST", "/training", {});
  failures = 0;
  if (found.state === "passed") { me.trained = true; practice = null; return next(); }
  if (found.state === "failed") { practice = null; return leave({ message: t("failed_training") }); }
  practice = found;
  return show(found.request, null, [el("p", { className: "kicker" }, t("training_of", { n: found.n, of: found.of }))]);
}

async function practised(one, answer) {
  let told;
  try { told = await call("POST", `/training/${one.id}`, { answer }); } catch (error) { busy = false; return say(error.message, true); }
  request = null;
  busy = false;
  const end = { passed: t("passed", { n: told.n_right, of: told.of }), again: t("again", { n: told.n_right, of: told.of, mark: told.needed }) }[told.state];
  const on = el("button", { type: "button", className: "main", onclick: () => { if (told.state === "passed") { me.trained = true; practice = null; } next(); } }, t("go_on"), " ", el("kbd", { "aria-hidden": "true" }, "Enter"));
  const news = el("section", { className: `feedback ${told.right ? "right" : "wrong"}`, role: "status" }, el("p", {}, told.right ? t("right") : t("wrong", { words: worded(one, told.expected) })), told.explanation ? markdown(told.explanation) : null, end ? el("p", {}, el("strong", {}, end)) : null);
  part("answers").replaceChildren(news, el("div", { className: "choices" }, on));
  on.focus({ preventScroll: true });
  return null;
}

// the letter or digit that is meant: what the key gives, or on other alphabets and rows of digits, where it stands
function meant(event) {
  if (event.key.length > 1) return event.key;
  if (/^[a-z0-9?]$/i.test(event.key)) return event.key.toLowerCase();
  return /^(?:Key|Digit|Numpad)([A-Z0-9])$/.exec(event.code)?.[1].toLowerCase() ?? event.key;
}

function pressed(event) {
  const key = meant(event);
  if (key === "z") return ready || !request ? undo() : null;
  if (key === "s") return skip();
  if (key === "c") return comment();
  if (key === "h") return look();
  if (key === "?") return guidelines(false);
  if (!request) return false;
  const sounds = [...main.querySelectorAll("audio")];
  if (key === " " && sounds.length && !event.target.closest("button, label, li")) {
    const one = sounds.find((sound) => !sound.paused) ?? sounds.find((sound) => !sound.ended && sound.currentTime > 0) ?? sounds.find((sound) => !sound.dataset.heard) ?? sounds[0];
    if (one.paused) one.play(); else one.pause();
    return true;
  }
  if (sendOrder) return key === "Enter" && !event.target.closest("button, fieldset") ? sendOrder() : false;
  const row = answersOf(request).find(([, own]) => own === key);
  return row ? send(row[2]) : false;
}

for (const [name, act] of Object.entries({ undo: () => undo(), skip, comment: () => comment(), history: look, help: () => guidelines(false), back: () => undo() })) part(name).addEventListener("click", act);
document.addEventListener("keydown", (event) => {
  // a key that is held does nothing again, nor does a button that has the focus
  if (event.repeat) { if (event.target.tagName === "BUTTON" && ["Enter", " "].includes(event.key)) event.preventDefault(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || /^(TEXTAREA|SELECT|AUDIO)$/.test(event.target.tagName) || (event.target.tagName === "INPUT" && !["checkbox", "radio", "range"].includes(event.target.type)) || !me?.consented) return;
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
addEventListener("storage", (event) => { if (me) count(); if (event.key === ANSWERED && request && event.newValue === String(request.id) && !busy && !replacing) next(); });
addEventListener("hashchange", () => { if (/^#cr[ia]_/.test(location.hash)) location.reload(); });
start();
