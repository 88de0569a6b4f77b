// The page of those who run a campaign. One part is shown at a time, asked for again every five seconds with tags, so
// that what has not changed is not sent or drawn again; items are searched, sorted and paged by the service.

import { base, el, markdown } from "/static/kit.js";
import { curve, spark, span } from "/static/pictures.js";

const main = document.getElementById("main"), status = document.getElementById("status"), dialog = document.getElementById("dialog"), tabs = document.getElementById("tabs");
const FORMATS = { jsonl: "jsonl", csv: "csv", parquet: "parquet", native: "jsonl", "label-studio": "json", argilla: "jsonl", qrels: "txt", pairs: "jsonl", consensus: "csv" };
const PARTS = { overview: "Overview", items: "Items", review: "Review", people: "Annotators", pay: "Pay", settings: "Settings", log: "Log" };
const tags = {}, seen = {}, links = [];
let token = "", drawn = "", view = null, role = "owner";
const table_state = { search: "", sort: "rank", descending: false, page: 0, question: "" }, people_state = { search: "", page: 0 }, comment_state = { search: "" };

const say = (text, bad = false) => { status.textContent = text; status.className = bad ? "bad" : ""; };
const number = (value) => (value == null ? "–" : typeof value !== "number" ? String(value) : Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(2).replace(/^-0\.00$/, "0.00"));
const when = (seconds) => (seconds ? new Date(seconds * 1000).toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }) : "–");
const ago = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);
const part = () => (location.hash.slice(1) in PARTS ? location.hash.slice(1) : "overview");
const owns = () => role === "owner";

async function ask(method, path, body) {
  const headers = { ...(token ? { authorization: `Bearer ${token}` } : {}), "content-type": "application/json", ...(method === "GET" && tags[path] ? { "if-none-match": tags[path] } : {}) };
  const response = await fetch(`${base}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body), cache: "no-store", signal: AbortSignal.timeout?.(30_000) });
  if (response.status === 304) return seen[path];
  const text = await response.text();
  let found = {};
  try { found = JSON.parse(text); } catch { /* an answer of a proxy */ }
  if (!response.ok) throw Object.assign(new Error(found.error?.message ?? `the service answered ${response.status}`), { status: response.status, type: found.error?.type });
  if (method === "GET" && response.headers.get("etag")) { tags[path] = response.headers.get("etag"); seen[path] = found; }
  return found;
}

async function download(path, name) {
  say("Preparing …");
  try {
    const response = await fetch(`${base}/api/v1${path}`, { headers: token ? { authorization: `Bearer ${token}` } : {} });
    if (!response.ok) return say((await response.json()).error?.message ?? "It did not work.", true);
    const link = el("a", { href: URL.createObjectURL(await response.blob()), download: name });
    document.body.append(link); link.click(); link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch { return say("There is no connection; try again.", true); }
  return say(`${name} is saved.`);
}

function signIn() {
  tabs.hidden = true;
  const field = el("input", { id: "token", type: "password", autocomplete: "off" });
  main.replaceChildren(el("form", { className: "panel", onsubmit: (event) => { event.preventDefault(); token = field.value.trim(); sessionStorage.setItem("crowdrank.owner", token); say(""); refresh(); } },
    el("p", {}, el("label", { for: "token" }, "Your token: the owner's from the first start, or the one that you were given")), el("div", { className: "row" }, field, el("button", { className: "main" }, "Open"))));
}

const section = (kicker, title, ...nodes) => el("section", { "data-name": kicker }, el("p", { className: "kicker" }, kicker), el("h2", {}, title), ...nodes);
const badge = (kind, words) => el("span", { className: `badge ${kind}` }, words);
const button = (words, onclick, given = {}) => el("button", { type: "button", "data-key": given["aria-label"] ?? words, onclick, ...given }, words);

function table(rows, columns, none = "Nothing yet.") {
  if (!rows?.length) return el("p", { className: "muted" }, none);
  return el("div", { className: "scroll", tabindex: "0", role: "region", "aria-label": columns.map(([name]) => (typeof name === "string" ? name : "")).filter(Boolean).join(", ") },
    el("table", {}, el("thead", {}, el("tr", {}, ...columns.map(([name, , how, order]) => el("th", { scope: "col", className: how ?? "", ...(order ? { "aria-sort": order } : {}) }, name)))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...columns.map(([, cell, how]) => el("td", { dir: "auto", className: how ?? "" }, cell(row) ?? "–")))))));
}

function pager(page, pages, go) {
  if (pages < 2) return null;
  return el("div", { className: "row" }, button("Back", () => go(page - 1), page ? { "aria-label": "Page before" } : { disabled: true, "aria-label": "Page before" }), el("span", { className: "muted" }, `Page ${number(page + 1)} of ${number(pages)}`), button("Next", () => go(page + 1), page + 1 < pages ? { "aria-label": "Page after" } : { disabled: true, "aria-label": "Page after" }));
}

async function act(what, words = "") {
  try { await what(); if (words) say(words); drawn = ""; await refresh(); } catch (error) { say(error.message, true); }
}

function confirmed(sentence, words, go) {
  const close = (text, className, then) => el("button", { type: "button", className, onclick: () => { dialog.close(); then?.(); } }, text);
  dialog.setAttribute("aria-label", words);
  dialog.replaceChildren(el("p", {}, sentence), el("div", { className: "row" }, close(words, "main", go), close("Cancel", "")));
  dialog.showModal();
}

function form(title, fields, words, send) {
  const inputs = {};
  const rows = fields.map(([name, label, input, hint]) => { inputs[name] = input; input.id = `field-${name}`; return el("div", { className: "field" }, el("label", { for: input.id }, label), hint ? el("span", {}, hint) : null, input); });
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(el("h2", {}, title), el("form", { onsubmit: (event) => { event.preventDefault(); dialog.close(); act(() => send(inputs)); } }, ...rows, el("div", { className: "row" }, el("button", { className: "main" }, words), button("Cancel", () => dialog.close()))));
  dialog.showModal();
}

const select = (options, value) => el("select", {}, ...options.map(([key, words]) => el("option", { value: key, ...(key === value ? { selected: true } : {}) }, words)));
const input = (type, value, more = {}) => el("input", { type, value: String(value ?? ""), ...more });

// ------------------------------------------------------------------------------------------ overview

async function overview() {
  const [agreement, course] = [await maybe("/agreement"), await maybe("/course")];
  return () => {
    const { cost, judgments, targets, requests, fit, forecast } = view;
    const out = requests.offered ?? 0, answered = Math.max(0, targets.taken - out), all = Math.max(1, targets.wanted, targets.taken);
    const share = (n) => `${Math.round((100 * n) / all)} %`;
    const done = forecast.judgments === 0 && judgments.n ? "All that the scheme asks is answered" : forecast.finish ? `At the pace of the last hour all is answered ${when(forecast.finish / 1e6)}` : "How long it takes shows after the first judgments";
    const lead = judgments.n ? `${number(judgments.n)} judgments are in, ${share(answered)} of what is asked so far, for ${number(cost.spent)} of ${number(cost.budget)}. ${done}${forecast.cost > cost.budget ? `; the budget ends before that, at about ${number(cost.budget)} of ${number(forecast.cost)}` : ""}.` : "Nobody has judged yet. Invite people or programs; what they say appears here by itself.";
    const bar = el("div", { className: "meter", role: "img", "aria-label": `${number(answered)} answered, ${number(out)} out, ${number(Math.max(0, targets.wanted - targets.taken))} open` }, el("span", { className: "part" }), el("span", { className: "out" }));
    bar.children[0].style.width = `${(100 * answered) / all}%`; bar.children[1].style.width = `${(100 * out) / all}%`;
    const card = (value, words) => el("li", {}, el("b", {}, value), el("span", {}, words));
    const fitted = fit.as_of_seq ? `${fit.newer ? `as of judgment ${number(fit.as_of_seq)}, ${number(fit.newer)} newer` : "includes all judgments"}${fit.final ? ", final" : ""}; ` : "comes after the first judgments";
    return [
      el("p", { className: "lead" }, lead), bar,
      el("p", { className: "muted" }, `${number(answered)} answered, ${number(out)} out, ${number(Math.max(0, targets.wanted - targets.taken))} open; ${number(targets.open)} of ${number(targets.n)} targets open; ${number(requests.skipped ?? 0)} skipped, ${number(requests.expired ?? 0)} expired, ${number(judgments.spare)} spare, ${number(judgments.withdrawn)} withdrawn.`),
      el("div", { className: "row" },
        ...(owns() ? [button("Invite", invite, { className: "main" }), view.state === "open" ? state("paused", "Pause") : view.state === "paused" ? state("open", "Go on") : null, view.state === "closed" ? null : state("closed", "Close", "Close the campaign for good? Nobody can answer or undo any more.")] : []),
        button("Full report", () => download("/report", "report.html"))),
      el("div", { id: "links" }, ...links),
      el("ul", { className: "cards" },
        card(number(judgments.n), `judgments, ${number(judgments.last_hour)} in the last hour`), card(`${number(cost.spent)} of ${number(cost.budget)}`, `spent; ${number(cost.reserved - cost.spent)} promised`),
        card(number(agreement?.alpha), agreement?.lower == null ? "agreement (alpha); needs items that several judged" : `agreement (alpha), 95 %: ${span(agreement.lower, agreement.upper)}`),
        card(forecast.finish && forecast.judgments ? when(forecast.finish / 1e6) : forecast.judgments ? "–" : "done", `${number(forecast.judgments)} to come, about ${number(forecast.cost)} in all`),
        el("li", {}, el("b", {}, fit.as_of_seq ? fit.method.replaceAll("_", " ") : "none yet"), el("span", {}, "consensus ", fitted, el("span", { id: "age" }), fit.error ? el("span", { className: "bad" }, fit.error) : ""))),
      section("Findings", course?.findings?.length ? "What the judgments say so far" : "Findings come with the first consensus",
        el("ul", { className: "findings" }, ...(course?.findings ?? []).map((one) => el("li", {}, badge(one.severity, one.severity), el("span", { dir: "auto" }, one.sentence))))),
      ...(view.questions.length ? [section("Questions", "Every question has its own consensus", table([{ name: mainQuestion(), as_of_seq: fit.as_of_seq, method: fit.method, agreement }, ...view.questions], [["Question", (row) => button(row.name, () => { table_state.question = row.name === mainQuestion() ? "" : row.name; location.hash = "items"; }, { className: "link" })], ["Consensus", (row) => (row.as_of_seq ? `${row.method.replaceAll("_", " ")}, as of judgment ${number(row.as_of_seq)}` : "none yet")], ["Agreement (alpha)", (row) => (row.agreement?.alpha == null ? "–" : `${number(row.agreement.alpha)} (${span(row.agreement.lower, row.agreement.upper)})`), "number"]]))] : []),
      section("Forecast", course?.ahead?.length ? `The next 100 judgments cost about ${number(course.ahead[0].cost)} and take the doubt from ${number(course.ahead[0] && lastDoubt(course))} to about ${number(course.ahead[0].doubt)}` : "What more judgments buy shows after the first fit",
        course?.course?.length ? el("figure", {}, curve(course.course, course.ahead), el("figcaption", {}, "Doubt (mean half-width of the items' 95 % intervals) against judgments: measured at each fit, dashed what is expected.")) : null),
      section("Download", "Take it with you", el("div", { className: "row" }, ...Object.entries(FORMATS).map(([format, ending]) => button(format, () => download(`/export?format=${format}${format === "pairs" && view.kind !== "preference" ? "&margin=0" : ""}`, `${format}.${ending}`.replace(/^(\w+)\.\1$/, "judgments.$1"))))))];
  };
}

const lastDoubt = (course) => course.course.filter((one) => one.doubt != null).at(-1)?.doubt;
const state = (to, words, sure) => button(words, () => { const go = () => act(() => ask("POST", "/campaign/state", { state: to })); if (sure) confirmed(sure, words, go); else go(); });

function invite() {
  const kind = select([["person", "people"], ["program", "programs"]]), uses = input("number", 1, { min: "1", max: "10000" }), days = input("number", 30, { min: "1", max: "3650" });
  form("Invite", [["kind", "For", kind], ["uses", "How many", uses], ["days", "Days that it can be used", days]], "Make it", async () => {
    const made = await ask("POST", "/invites", { kind: kind.value, uses: Number(uses.value), days: Number(days.value) });
    show(`Shown this once, for ${uses.value} ${kind.value === "person" ? "people" : "programs"}: `, kind.value === "person" ? made.link : made.token);
  });
}

function show(words, secret) {
  links.unshift(el("p", { className: "panel" }, words, el("code", {}, secret), " ", button("Copy", () => navigator.clipboard?.writeText(secret).then(() => say("Copied.")))));
  location.hash = ""; drawn = "";
}

// ------------------------------------------------------------------------------------------ items

async function items() {
  const { search, sort, descending, page, question } = table_state;
  const found = await ask("GET", `/items?${new URLSearchParams({ search, sort, descending, page, question })}`);
  return () => {
    const change = (more) => { Object.assign(table_state, { page: 0, ...more }); drawn = ""; refresh(); };
    const head = (name, words) => button(words, () => change({ sort: name, descending: sort === name ? !descending : name !== "rank" && name !== "item" }));
    const order = (name) => (sort !== name ? "none" : descending ? "descending" : "ascending");
    const field = input("search", search, { id: "search", placeholder: "id or words" });
    const several = found.items.some((row) => row.query);
    const asked = select([["", mainQuestion()], ...view.questions.map((one) => [one.name, one.name])], question);
    asked.id = "question"; asked.addEventListener("change", () => change({ question: asked.value }));
    return [section("Items", `${number(found.n)} items${search ? ` with “${search}”` : ""}, with the consensus${found.as_of_seq ? ` as of judgment ${number(found.as_of_seq)}` : ""}`,
      question ? null : stale(view.fit),
      el("form", { className: "row apart", onsubmit: (event) => { event.preventDefault(); change({ search: field.value }); } }, el("div", { className: "row" }, ...(view.questions.length ? [el("label", { for: "question" }, "Question"), asked] : []), el("label", { for: "search" }, "Search"), field, el("button", {}, "Find")), owns() ? button("Add items", addItems) : null),
      table(found.items, [[head("rank", "Rank"), (row) => number(row.rank), "number", order("rank")], [head("item", "Item"), (row) => el("div", {}, several ? el("div", { className: "of", dir: "auto" }, row.query_content || row.query) : null, button(row.item, () => one(row.id), { className: "link", "aria-label": `Item ${row.item}` }), el("div", { className: "clip", dir: "auto" }, row.content)), "words", order("item")],
        [head("score", found.items.some((row) => row.labels != null || typeof row.grade === "string") ? "Classes" : "Score"), said, "number", order("score")], ...(view.fit.updated_seq && !question ? [["Since the fit", (row) => (row.since_fit ? number(row.since_fit.score) : ""), "number"]] : []), [head("doubt", "95 % interval"), (row) => span(row.lower, row.upper), "number", order("doubt")],
        ["Ranks", (row) => span(row.rank_lower, row.rank_upper), "number"], [head("judged", "Judgments"), (row) => number(row.n), "number", order("judged")], ["", (row) => (row.decided ? badge("good", "decided") : row.truth != null ? badge("info", "known") : "")]], search ? "No item has that." : "There are no items."),
      pager(page, Math.ceil(found.n / found.page_rows), (to) => change({ page: to })))];
  };
}

// of classes the one that is likeliest, of several those that hold, of all else a number
const said = (row) => (row.labels != null ? row.labels.replaceAll("|", ", ") || "none" : typeof row.grade === "string" ? `${row.grade}${row.confidence == null ? "" : ` (${Math.round(100 * row.confidence)} %)`}` : number(row.score));
const mainQuestion = () => view.settings.questions.find((one) => one.kind === view.kind && one.required && !Object.keys(one.when).length)?.name ?? "";

function stale(fit) {
  if (!fit.newer || fit.reads_anew == null) return null;
  const words = fit.updated_seq ? `Scores, ranks and intervals are those of the fit. “Since the fit” is the score with the judgments up to ${number(fit.updated_seq)}, annotators and other items as in the fit.`
    : `${number(fit.newer)} newer ${fit.newer === 1 ? "judgment is" : "judgments are"} not in these scores${fit.reads_anew ? " yet" : ` before the next fit: ${fit.method} is only fitted as a whole`}.`;
  return el("p", { className: "muted", id: "stale" }, words);
}

// text as text, Markdown as the annotators see it; files and pages of others come by a call with the token and are shown from memory
function body(item) {
  const node = el("div", { className: "content", dir: "auto" });
  if (item.content_type === "image" && item.content.startsWith("https://")) node.append(el("img", { src: item.content, alt: `Item ${item.item}`, referrerpolicy: "no-referrer" }));
  else if (["image", "audio", "html"].includes(item.content_type)) node.append(button(`Save the ${item.content_type} file`, () => download(`/items/${item.id}/content`, item.content_type === "html" ? `${item.item}.html` : item.content.split("/").at(-1))));
  else node.append(item.content_type === "markdown" ? markdown(item.content) : item.content);
  return node;
}

const answer = (said) => (said.cant_tell ? "can't tell" : "grade" in said ? view.settings.grades[said.grade] ?? number(said.grade) : "winner" in said ? (said.winner === "tie" ? "tie" : said.left ? said[said.winner] : said.winner.toUpperCase()) : (said.order ?? []).map((group) => group.join(" = ")).join(" > "));

async function one(id) {
  const item = await ask("GET", `/items/${id}`);
  const close = button("Close", () => dialog.close());
  dialog.setAttribute("aria-label", `Item ${item.item}`);
  const facts = item.consensus ? `Rank ${number(item.consensus.rank)}, score ${number(item.consensus.score)} (${span(item.consensus.lower, item.consensus.upper)})` : "No consensus yet";
  dialog.replaceChildren(el("h2", { dir: "auto" }, item.item), item.query_content ? el("p", { className: "muted", dir: "auto" }, item.query_content) : null, body(item),
    el("p", {}, `${facts}${item.truth != null ? `; known: ${view.settings.grades[item.truth] ?? number(item.truth)}` : ""}.`),
    ...Object.entries(item.questions).map(([name, row]) => el("p", { dir: "auto" }, `${name}: ${said(row)}${row.lower == null ? "" : ` (${span(row.lower, row.upper)})`}`)),
    el("h3", {}, "Judgments"), table(item.judgments, [["Annotator", (row) => row.annotator], ["Answer", (row) => (row.left ? `${answer(row)} (${row.left} / ${row.right})` : answer(row))], ...view.settings.questions.filter((one) => one.name !== mainQuestion()).map((one) => [one.name, (row) => row[`question ${one.name}`]]), ["When", (row) => when(row.time)], ["Seconds", (row) => number(row.seconds), "number"], ["Comment", (row) => row.comment || "", "words"], ["", (row) => (row.withdrawn ? badge("info", "withdrawn") : row.counted ? "" : badge("warning", "does not count"))]], "Nobody has judged it."),
    ...(item.skips.length ? [el("h3", {}, "Skips"), table(item.skips, [["Annotator", (row) => row.annotator], ["Reason", (row) => row.reason, "words"], ["When", (row) => when(row.time)]])] : []),
    ...(item.decisions.length ? [el("h3", {}, "Decisions"), table(item.decisions, [["Answer", (row) => answer(row.answer)], ["By", (row) => row.by], ["When", (row) => when(row.time)], ["Note", (row) => row.note, "words"]])] : []),
    el("div", { className: "row" }, owns() ? button("Mend", () => mend(item)) : null, close));
  dialog.showModal();
}

function mend(item) {
  const content = el("textarea", {}), query = el("textarea", {});
  content.value = item.content; query.value = item.query_content;
  form(`Mend ${item.item}`, [["content", "Content", content, "What annotators see from now on; judgments that were made stay."], ["query", "Query", query, "Shown with all items of this query."]], "Save", () => ask("POST", `/items/${item.id}`, { content: content.value, query_content: query.value }));
}

function addItems() {
  const text = el("textarea", { placeholder: '{"query": "q1", "item": "new", "content": "What annotators see"}' });
  form("Add items", [["items", "One item to a line, as JSON", text, "query (where there are several), item, content; content_type, query_content, truth if you like"]], "Add", async () => {
    const rows = text.value.split("\n").filter((line) => line.trim()).map((line, place) => { try { return JSON.parse(line); } catch { throw new Error(`line ${place + 1} is not JSON`); } });
    say(`${number((await ask("POST", "/items", { items: rows })).added)} items are added.`);
  });
}

// ------------------------------------------------------------------------------------------ review

async function review() {
  const found = await ask("GET", "/review"), { comments } = await ask("GET", `/comments?${new URLSearchParams(comment_state)}`);
  const words = input("search", comment_state.search, { id: "words", placeholder: "words" });
  const cases = found.queue.map((one, place) => {
    const tell = el("input", { type: "checkbox", id: `tell-${place}` }), note = input("text", "", { id: `note-${place}`, placeholder: "why, if you like", "aria-label": `Note on case ${place + 1}` });
    const give = (value, words) => button(words, () => act(() => ask("POST", "/review", { target: one.target, answer: value, note: note.value, tell: tell.checked }), `Decided: ${words}. The next fit takes it as known.`), { "aria-label": `${words} (case ${place + 1})` });
    const letters = one.items.map((_, n) => String.fromCharCode(97 + n));
    const choices = view.kind === "grade" ? view.settings.grades.map((name, grade) => give({ grade }, name)) : view.kind === "preference" ? [...letters.map((letter) => give({ winner: letter }, `${letter.toUpperCase()} is better`)), ...(view.settings.ties ? [give({ winner: "tie" }, "Tie")] : [])]
      : one.answers.slice(0, 4).map((said) => give(said.answer, said.answer.order.map((group) => group.join(" = ")).join(" > ").toUpperCase()));
    const counts = {};
    for (const said of one.answers) (counts[answer(said.answer)] ??= []).push(said.annotator);
    return el("div", { className: "case" }, el("div", { className: "row" }, badge(one.why === "reported" ? "problem" : "warning", one.why), el("span", { className: "muted" }, `case ${place + 1}`), one.decision ? badge("good", `decided: ${answer(one.decision.answer)}`) : null),
      one.query_content ? el("p", { dir: "auto" }, one.query_content) : null,
      el("div", { className: "pair" }, ...one.items.map((item, n) => el("div", {}, el("p", { className: "of" }, one.items.length > 1 ? `${letters[n].toUpperCase()}: ${item.item}` : item.item), body(item)))),
      ...one.skips.map((said) => el("p", {}, `${said.annotator} skipped it${said.reason ? `: ${said.reason}` : ""}`)),
      ...one.answers.filter((said) => said.comment).map((said) => el("p", {}, `${said.annotator}: ${said.comment}`)),
      el("p", { className: "muted" }, Object.entries(counts).map(([words, who]) => `${words}: ${who.length} (${who.slice(0, 5).join(", ")}${who.length > 5 ? " …" : ""})`).join("; ")),
      role === "viewer" ? null : el("div", {}, el("div", { className: "row" }, ...choices), el("div", { className: "row" }, note, tell, el("label", { for: tell.id }, "tell those who said otherwise"))));
  });
  const doubtful = table(found.annotators, [["Name", (row) => el("div", {}, row.name, " ", badge("warning", row.action === "drop" ? "leave out?" : "look at")), "name"], ["Judged", (row) => number(row.n_answered), "number"], ["Quality", (row) => (row.measured ? spark.interval(row.quality, row.lower, row.upper) : "not measured yet")],
    ["Why", (row) => [row.reason, row.checks?.below_chance ? `${row.checks.right} of ${row.checks.n} checks right, below chance` : ""].filter(Boolean).join("; "), "words"],
    ["", (row) => (owns() ? el("div", { className: "row" }, button("Let them go on", () => act(() => ask("POST", `/annotators/${row.id}`, { state: "active" }), `${row.name} goes on.`), { "aria-label": `Let ${row.name} go on` }), button("Actions", () => menu(row), { "aria-label": `Actions on ${row.name}` })) : "")]]);
  return () => [...(found.annotators.length ? [section("Annotators", `${number(found.annotators.length)} ${found.annotators.length === 1 ? "annotator needs" : "annotators need"} a look`, el("p", { className: "muted" }, "Nobody is left out by itself. Whom you let go on comes back here after as many judgments again."), doubtful)] : []),
    section("Review", found.n_open ? `${number(found.n_open)} ${found.n_open === 1 ? "case waits" : "cases wait"} for a decision` : "Nothing waits for a decision",
    el("p", { className: "muted" }, `Disputed by annotators, or reported by one. What you decide is known to the next fit; ${number(found.n_decided)} decided so far.`), found.n_decided ? el("div", { className: "row" }, button("Save decisions", () => download("/review/known", "known.csv"))) : null, ...cases),
    section("Comments", comments.length || comment_state.search ? "What annotators said" : "Nobody has commented yet",
      el("form", { className: "row", onsubmit: (event) => { event.preventDefault(); comment_state.search = words.value; drawn = ""; refresh(); } }, el("label", { for: "words" }, "Search"), words, el("button", {}, "Find")),
      comments.length ? table(comments, [["When", (row) => when(row.at / 1e6)], ["Annotator", (row) => row.annotator], ["About", (row) => [row.query, row.items.join(", ")].filter(Boolean).join(": "), "words"], ["Comment", (row) => row.comment, "words"]]) : comment_state.search ? el("p", { className: "muted" }, "No comment has that.") : null)];
}

// ------------------------------------------------------------------------------------------ annotators

async function people() {
  const found = await ask("GET", "/people"), invites = owns() ? await ask("GET", "/invites") : { invites: [] };
  const members = owns() ? await ask("GET", "/members") : { members: [] };
  return () => {
    const change = (more) => { Object.assign(people_state, { page: 0, ...more }); drawn = ""; refresh(); };
    const urgent = ["drop", "review", "unsure"], place = (row) => (row.state !== "active" ? 9 : urgent.indexOf(row.action) < 0 ? 3 : urgent.indexOf(row.action));
    const matching = found.annotators.toSorted((one, other) => place(one) - place(other)).filter((row) => row.name.toLowerCase().includes(people_state.search.toLowerCase()));
    const rows = matching.slice(50 * people_state.page, 50 * people_state.page + 50);
    const field = input("search", people_state.search, { id: "who", placeholder: "name" });
    const flagged = found.annotators.filter((row) => ["drop", "review"].includes(row.action)).length, unsure = found.annotators.filter((row) => row.action === "unsure").length, programs = found.annotators.filter((row) => row.kind === "program");
    const quality = (row) => (row.quality == null || row.measured === false ? el("span", { className: "muted" }, "not measured yet") : spark.interval(row.quality, row.quality_lower ?? row.lower, row.quality_upper ?? row.upper));
    const suggested = (row) => { const checks = row.checks ? `${row.checks.right} of ${row.checks.n} checks right${row.checks.below_chance ? ", below chance" : ""}` : ""; return el("div", {}, row.action && row.action !== "keep" ? badge(row.action === "unsure" ? "info" : "warning", row.action) : "", " ", row.action && row.action !== "keep" ? row.reason : "", checks ? el("p", { className: row.checks.below_chance ? "bad" : "muted" }, checks) : ""); };
    return [section("Annotators", `${number(found.annotators.length)} take part${flagged ? `; ${number(flagged)} ${flagged === 1 ? "needs" : "need"} a look` : ""}${unsure ? `; ${number(unsure)} may be guessing, for all that is known yet` : ""}`,
      el("form", { className: "row apart", onsubmit: (event) => { event.preventDefault(); change({ search: field.value }); } }, el("div", { className: "row" }, el("label", { for: "who" }, "Search"), field, el("button", {}, "Find")), owns() ? button("Invite", invite, { className: "main" }) : null),
      table(rows, [["Name", (row) => el("div", {}, row.name, " ", row.kind === "program" ? badge("info", "program") : "", row.state === "active" ? "" : badge("warning", row.state)), "name"], ["Judged", (row) => number(row.n_answered), "number"], ["Quality", quality], ["Agreement over time", (row) => (row.agreement?.length > 1 ? spark.line(row.agreement) : row.agreement?.length ? number(row.agreement[0]) : "–")], ["Seconds each", (row) => number(row.seconds), "number"], ["Cost", (row) => number(row.owed), "number"], ["Suggested", suggested, "words"], ["", (row) => (owns() && row.state !== "removed" ? button("Actions", () => menu(row), { "aria-label": `Actions on ${row.name}` }) : "")]], "Nobody yet; invite somebody."),
      pager(people_state.page, Math.ceil(matching.length / 50), (to) => change({ page: to }))),
    ...(programs.length ? [section("Programs", "Programs in the loop", table(programs, [["Program", (row) => row.name], ["Judged", (row) => number(row.n_answered), "number"], ["Cost", (row) => number(row.owed), "number"], ["Audit against people", (row) => row.audit ?? "needs three people who judged the same", "words"]]))] : []),
    ...(owns() ? [section("Invites", "Invites", table(invites.invites.slice(0, 100), [["Number", (row) => number(row.id), "number"], ["Kind", (row) => row.kind], ["Name", (row) => row.name], ["Uses left", (row) => number(row.uses_left), "number"], ["Until", (row) => new Date(row.expires_at / 1000).toLocaleDateString()], ["", (row) => (row.revoked_at ? "revoked" : !row.uses_left ? "used up" : button("Revoke", () => act(() => ask("POST", `/invites/${row.id}/revoke`, {})), { "aria-label": `Revoke invite ${row.id}` }))]])),
      section("Members", "Who runs it with you", table(members.members, [["Name", (row) => row.name], ["Role", (row) => row.role], ["Since", (row) => when(row.created_at / 1e6)], ["", (row) => (row.revoked_at ? "revoked" : button("Revoke", () => act(() => ask("POST", `/members/${row.id}/revoke`, {})), { "aria-label": `Revoke ${row.name}` }))]], "Nobody else."), el("div", { className: "row" }, button("Add somebody", member)))] : [])];
  };
}

function member() {
  const name = input("text", "", { required: true, maxlength: "80" }), kind = select([["reviewer", "reviewer: sees everything, decides what is disputed"], ["viewer", "viewer: sees everything"], ["owner", "owner: may do everything"]]);
  form("Add somebody", [["name", "Name", name, "What a login header says of them, where a proxy asks people to log in"], ["role", "Role", kind]], "Add", async () => { const made = await ask("POST", "/members", { name: name.value, role: kind.value }); show(`Shown this once, for ${name.value}: `, made.link); });
}

function menu(row) {
  const set = (to, words, sure, judgments) => button(words, () => { dialog.close(); const go = () => act(() => ask("POST", `/annotators/${row.id}`, { state: to, ...(judgments ? { judgments } : {}) })); if (sure) confirmed(sure, words, go); else go(); });
  const message = () => { const text = el("textarea", {}); text.value = row.message ?? ""; form(`Message to ${row.name}`, [["text", "Shown on their page until you take it away", text]], "Send", () => ask("POST", `/annotators/${row.id}/message`, { text: text.value })); };
  dialog.setAttribute("aria-label", `Actions on ${row.name}`);
  dialog.replaceChildren(el("h2", { dir: "auto" }, row.name), el("div", { className: "row" },
    button("Message", () => { dialog.close(); message(); }), button("Personal link", () => { dialog.close(); act(async () => { const made = await ask("POST", `/annotators/${row.id}/link`, {}); show(`Shown this once; it lets ${row.name} in again: `, made.link); }); }),
    row.state === "paused" ? set("active", "Go on") : set("paused", "Pause"), set("removed", "Remove", `Remove ${row.name}, and keep their judgments?`), set("removed", "Uncount", `Remove ${row.name}, and let their judgments count no more?`, "uncount")),
  el("div", { className: "row" }, button("Cancel", () => dialog.close())));
  dialog.showModal();
}

// ------------------------------------------------------------------------------------------ pay, settings, log

const bonus = { share: 0, from: 0.8, unit: 0.01 };
async function pay() {
  const query = new URLSearchParams({ bonus: bonus.share, bonus_from: bonus.from, unit: bonus.unit });
  const found = await ask("GET", `/pay?${query}`);
  return () => {
    const field = (name, label, step, most) => { const one = input("number", bonus[name], { id: `pay-${name}`, min: "0", max: most, step }); one.addEventListener("change", () => { bonus[name] = Number(one.value) || 0; drawn = ""; refresh(); }); return el("div", { className: "field" }, el("label", { for: one.id }, label), one); };
    const money = (value) => (value * bonus.unit).toFixed(2);
    return [section("Pay", `${money(found.owed)} is owed${found.bonus ? `, and ${money(found.bonus)} as a bonus` : ""}`, el("p", { className: "muted" }, "A judgment that is stored and was not withdrawn is paid, also where it came late and does not count. A bonus is paid only where quality was measured."),
      el("div", { className: "row" }, field("unit", "What a unit of cost is worth", "any", "1000000"), field("share", "Bonus, as a share", "0.05", "10"), field("from", "for a quality from", "0.05", "1")),
      table(found.pay, [["Annotator", (row) => row.annotator], ["Platform id", (row) => row.external || "–"], ["Judgments", (row) => number(row.judgments), "number"], ["Quality", (row) => number(row.quality), "number"], ["Owed", (row) => money(row.owed), "number"], ["Bonus", (row) => money(row.bonus), "number"]], "Nobody is owed anything yet."),
      el("div", { className: "row" }, ...["csv", "prolific", "mturk"].map((format) => button(`Save for ${format === "csv" ? "a spreadsheet" : format === "mturk" ? "MTurk" : "Prolific"}`, () => download(`/pay?format=${format}&${query}`, `pay-${format}.csv`)))))];
  };
}

async function settings() {
  const now = (await ask("GET", "/settings")).settings;
  return () => {
    const inputs = { budget: input("number", now.budget, { min: "1" }), question: input("text", now.question), scheme: input("text", now.scheme), overlap_max: input("number", now.overlap_max, { min: "1" }), lease_seconds: input("number", now.lease_seconds, { min: "5" }), least_gain: input("number", now.least_gain, { min: "0", step: "any" }), close_when_done: el("input", { type: "checkbox", checked: now.close_when_done }), show_quality: el("input", { type: "checkbox", checked: now.show_quality }), guidelines: el("textarea", {}) };
    inputs.guidelines.value = now.guidelines;
    const hints = { budget: ["Budget", `${number(view.cost.reserved)} is spent or promised`], question: ["Question", "What annotators are asked"], scheme: ["Scheme", "3-overlap, if-good-3, information, uncertainty …"], overlap_max: ["Most judgments of one target", ""], lease_seconds: ["Seconds that a request is held", ""], least_gain: ["Stop rule: least gain for a unit of money", "0 asks as long as there is money"], close_when_done: ["Close by itself once nothing is left to ask", ""], show_quality: ["Annotators see their own quality", ""], guidelines: ["Guidelines", "In Markdown; people have to accept another text anew"] };
    const send = () => act(async () => {
      const changed = {};
      for (const [name, one] of Object.entries(inputs)) { const value = one.type === "checkbox" ? one.checked : one.type === "number" ? Number(one.value) : one.value; if (value !== now[name]) changed[name] = value; }
      if (!Object.keys(changed).length) return say("Nothing was changed.");
      await ask("POST", "/settings", changed);
      return say(`In force now: ${Object.keys(changed).map((name) => hints[name][0].toLowerCase()).join(", ")}.`);
    });
    return [section("Settings", "What is asked, of whom, at what cost", el("p", { className: "muted" }, "Changes are in force at once, and stay when the service starts again; a line that is edited in the campaign's file later counts more."),
      el("form", { onsubmit: (event) => { event.preventDefault(); send(); } }, ...Object.entries(inputs).map(([name, one]) => { one.id = `set-${name}`; if (!owns()) one.disabled = true; return el("div", { className: "field" }, el("label", { for: one.id }, hints[name][0]), hints[name][1] ? el("span", {}, hints[name][1]) : null, one); }), owns() ? el("div", { className: "row" }, el("button", { className: "main" }, "Put into force"), button("Add items", addItems)) : null))];
  };
}

let before = null;
async function log() {
  const found = await ask("GET", `/events${before ? `?before=${before}` : ""}`);
  return () => [section("Log", "Who did what and when", table(found.events, [["When", (row) => when(row.time)], ["Who", (row) => (row.name ? `${row.name} (${row.actor})` : row.actor)], ["What", (row) => row.kind], ["Detail", (row) => Object.entries(row.detail).map(([key, value]) => `${key}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", "), "words"]]),
    el("div", { className: "row" }, before ? button("Latest", () => { before = null; drawn = ""; refresh(); }) : null, found.next_before ? button("Earlier", () => { before = found.next_before; drawn = ""; refresh(); }) : null))];
}

// ------------------------------------------------------------------------------------------ drawing

const DRAW = { overview, items, review, people, pay, settings, log };
const maybe = (path) => ask("GET", path).catch((error) => { if (error.status === 404 || error.type === "fitting") return null; throw error; });

async function refresh() {
  clearTimeout(refresh.timer);
  const wanted = part();
  try {
    view = await ask("GET", "/campaign");
    if (!refresh.role) { refresh.role = (await maybe(`/campaigns`))?.campaigns?.find((one) => one.place === base)?.role ?? "owner"; role = refresh.role; }
    const draw = await DRAW[wanted]();
    const tag = JSON.stringify([wanted, role, Object.entries(tags), table_state, people_state, comment_state, bonus, before, links.length]);
    const busy = main.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
    if (tag !== drawn && wanted === part() && !(busy && drawn.startsWith(`["${wanted}"`))) { drawn = tag; redraw(draw()); }
    age();
    if (status.className !== "bad") say(`as of ${new Date().toLocaleTimeString()}`);
  } catch (error) {
    if (error.status === 401 || error.status === 403) { sessionStorage.removeItem("crowdrank.owner"); refresh.role = ""; say(error.message, true); return signIn(); }
    say(error.status ? error.message : "No connection; trying again.", true);
    drawn = "";
  }
  refresh.timer = setTimeout(() => { if (status.className === "bad") say(""); refresh(); }, document.visibilityState === "visible" ? 5000 : 60000);
}

// whoever is on a button or has scrolled a table stays there
function redraw(nodes) {
  const key = document.activeElement?.dataset?.key, places = [...main.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  document.getElementById("title").replaceChildren(view.name, " ", el("span", { className: `state ${view.state}` }, view.state));
  document.title = `${view.name} (${view.state})`;
  tabs.hidden = false;
  tabs.replaceChildren(el("ul", {}, ...Object.entries(PARTS).filter(([name]) => name !== "pay" || owns()).map(([name, words]) => el("li", {}, el("a", { href: `#${name}`, ...(name === part() ? { "aria-current": "page" } : {}) }, words)))));
  main.replaceChildren(...nodes.filter(Boolean));
  [...main.querySelectorAll(".scroll")].forEach((box, place) => { box.scrollLeft = places[place] ?? 0; });
  if (key) [...main.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key)?.focus({ preventScroll: true });
}

function age() {
  const node = main.querySelector("#age");
  if (node && view?.fit.age != null) node.textContent = `${ago(view.fit.age)} old`;
}

const given = location.hash.slice(1);
if (given.startsWith("cro_")) { sessionStorage.setItem("crowdrank.owner", given); history.replaceState(null, "", location.pathname); }
token = sessionStorage.getItem("crowdrank.owner") ?? "";
addEventListener("hashchange", () => { drawn = ""; refresh(); });
addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") refresh(); });
refresh();
