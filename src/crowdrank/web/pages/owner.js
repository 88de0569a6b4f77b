// The owner's page: polls every five seconds, with tags so that what has not changed is not sent or drawn again.

import { el } from "/static/kit.js";

const main = document.getElementById("main"), status = document.getElementById("status"), dialog = document.getElementById("dialog");
const VIEWS = ["/campaign", "/quality", "/agreement", "/consensus", "/annotators", "/skipped", "/spares", "/invites"];
const FORMATS = { jsonl: "jsonl", csv: "csv", parquet: "parquet", native: "jsonl", "label-studio": "json", argilla: "jsonl", qrels: "txt", pairs: "jsonl" };
const MOST_ROWS = 200;
const tags = {}, seen = {}, links = [];
let token = "", drawn = [];

function say(text, bad = false) { status.textContent = text; status.className = bad ? "bad" : ""; }

async function ask(method, path, body) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...(method === "GET" && tags[path] ? { "if-none-match": tags[path] } : {}) };
  const response = await fetch(`/api/v1${path}`, { method, headers, body: body && JSON.stringify(body), cache: "no-store", signal: AbortSignal.timeout?.(30_000) });
  if (response.status === 304) return seen[path].found;
  const text = await response.text();
  if (method === "GET" && response.ok && seen[path]?.text === text) return seen[path].found;
  let found = {};
  try { found = JSON.parse(text); } catch { /* an answer of a proxy */ }
  if (!response.ok) throw Object.assign(new Error(found.error?.message ?? `the service answered ${response.status}`), { status: response.status });
  if (method === "GET") { tags[path] = response.headers.get("etag"); seen[path] = { found, text, at: performance.now() }; }
  return found;
}

async function download(path, name) {
  say("Preparing …");
  try {
    const response = await fetch(`/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) return say((await response.json()).error?.message ?? "It did not work.", true);
    const link = el("a", { href: URL.createObjectURL(await response.blob()), download: name });
    document.body.append(link); link.click(); link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch { return say("There is no connection; try again.", true); }
  return say(`${name} is saved.`);
}

function signIn() {
  const field = el("input", { id: "token", type: "password", autocomplete: "off" });
  main.replaceChildren(el("form", { className: "item", onsubmit: (event) => { event.preventDefault(); token = field.value.trim(); sessionStorage.setItem("crowdrank.owner", token); say(""); refresh(); } },
    el("p", {}, el("label", { for: "token" }, "The owner's token, from the first start")), el("div", { className: "choices bar" }, field, el("button", { className: "main" }, "Open"))));
}

// numbers to two decimals, words as they are
const number = (value) => (value == null ? "–" : typeof value !== "number" ? String(value) : Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(2).replace(/^-0\.00$/, "0.00"));
const span = (low, high) => (low == null ? "–" : [low, high].map((one) => (Number.isInteger(low) && Number.isInteger(high) ? number(one) : one.toFixed(2))).join(" to "));
const tile = (name, value, ...more) => el("div", { className: "tile" }, name, el("b", {}, number(value)), ...more);
const ago = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);

function table(rows, columns, none = "Nothing yet.") {
  if (!rows?.length) return el("p", { className: "dim" }, none);
  const shown = rows.slice(0, MOST_ROWS);
  return el("div", { className: "scroll", tabindex: "0", role: "region", "aria-label": columns.map(([name]) => name).join(", ") },
    el("table", {}, el("thead", {}, el("tr", {}, ...columns.map(([name, , how]) => el("th", { scope: "col", className: how ?? "" }, name)))),
      el("tbody", {}, ...shown.map((row) => el("tr", {}, ...columns.map(([, cell, how]) => el("td", { dir: "auto", className: how ?? "" }, cell(row) ?? "–")))))),
    rows.length > shown.length ? el("p", { className: "dim" }, `The first ${MOST_ROWS} of ${number(rows.length)}; a download has all.`) : null);
}

function section(name, ...nodes) { return el("section", { "data-name": name }, el("h2", {}, name), ...nodes); }

function act(words, what, sure, name = "") {
  const go = async () => { try { await what(); await refresh(); } catch (error) { say(error.message, true); } };
  return el("button", { type: "button", "data-key": `${words} ${name}`, ...(name ? { "aria-label": `${words} ${name}` } : {}), onclick: () => (sure ? confirmed(sure, words, go) : go()) }, words);
}

function confirmed(sentence, words, go) {
  const button = (text, className, then) => el("button", { type: "button", className, onclick: () => { dialog.close(); then?.(); } }, text);
  dialog.setAttribute("aria-label", words);
  dialog.replaceChildren(el("p", {}, sentence), el("div", { className: "choices" }, button(words, "main", go), button("Back", "")));
  dialog.showModal();
}

async function refresh() {
  clearTimeout(refresh.timer);
  try {
    const maybe = (path) => ask("GET", path).catch((error) => { if (error.status === 404 || error.type === "fitting") return null; throw error; });
    const views = [];
    for (const path of VIEWS) views.push(await maybe(path));
    if (views.some((view, place) => view !== drawn[place]) || !main.querySelector(".tiles")) { drawn = views; redraw(...views); }
    age();
    if (status.className !== "bad") say(`as of ${new Date().toLocaleTimeString()}`);
  } catch (error) {
    if (error.status === 401 || error.status === 403) { sessionStorage.removeItem("crowdrank.owner"); say(error.message, true); return signIn(); }
    say(error.status ? error.message : "No connection; trying again.", true);
    drawn = [];
  }
  refresh.timer = setTimeout(() => { if (status.className === "bad") say(""); refresh(); }, document.visibilityState === "visible" ? 5000 : 60000);
}

// whoever is on a button or has scrolled a table stays there
function redraw(...views) {
  const key = document.activeElement?.dataset?.key, places = {};
  for (const box of main.querySelectorAll(".scroll")) places[box.closest("section").dataset.name] = [box.scrollLeft, box.scrollTop];
  draw(...views);
  for (const box of main.querySelectorAll(".scroll")) [box.scrollLeft, box.scrollTop] = places[box.closest("section").dataset.name] ?? [0, 0];
  if (key) [...main.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key)?.focus({ preventScroll: true });
}

function age() {
  const node = main.querySelector("#age"), fit = seen["/campaign"]?.found.fit;
  if (node && fit?.age != null) node.textContent = `${ago(fit.age + (performance.now() - seen["/campaign"].at) / 1000)} old${fit.final ? ", final" : ""}; `;
}

function draw(view, quality, agreement, consensus, annotators, skipped, spares, invites) {
  document.getElementById("title").replaceChildren(view.name, " ", el("span", { className: `state ${view.state}` }, view.state));
  document.title = `${view.name} (${view.state})`;
  const judged = Object.fromEntries((quality?.annotators ?? []).map((row) => [row.annotator, row]));
  const state = (to, words, sure) => act(words, () => ask("POST", "/campaign/state", { state: to }), sure);
  main.replaceChildren(
    el("div", { className: "choices bar" },
      view.state === "open" ? state("paused", "Pause") : null, view.state === "paused" ? state("open", "Go on") : null,
      view.state === "closed" ? null : state("closed", "Close", "Close the campaign for good? Nobody can answer or undo any more."),
      el("button", { type: "button", "data-key": "invite", className: "main", onclick: invite }, "Invite"),
      el("button", { type: "button", "data-key": "report", onclick: () => download("/report", "report.html") }, "Full report")),
    el("div", { id: "links" }, ...links), tiles(view, agreement), progress(view),
    section("Annotators", annotatorTable(annotators.annotators, judged)),
    section("Consensus", stale(view.fit), table(consensus?.items, [["Query", (row) => row.query], ["Item", (row) => row.item], ["Rank", (row) => number(row.rank), "right"], ["Score", (row) => number(row.score), "right"], ...(view.fit.updated_seq ? [["Since the fit", (row) => (row.since_fit ? `${number(row.since_fit.score)} as of ${number(row.since_fit.seq)}` : ""), "right"]] : []), ["95 % interval", (row) => span(row.lower, row.upper), "right"], ["Ranks", (row) => span(row.rank_lower, row.rank_upper), "right"]], "It comes after the first judgments.")),
    section("Disputed", disputed(agreement?.disputed)),
    section("Skipped by three or more", table(skipped.skipped, [["Query", (row) => row.query], ["Items", (row) => row.items.join(", ")], ["Skips", (row) => number(row.n_skipped), "right"], ["Reasons", (row) => row.reasons.join("; "), "wide"]])),
    section("Spare judgments", table(spares.spares, [["Judgment", (row) => number(row.seq), "right"], ["Annotator", (row) => row.annotator], ["Items", (row) => row.items.join(", ")], ["Paid", (row) => (row.paid ? "yes" : "no")]])),
    section("Invites", table(invites.invites, [["Number", (row) => number(row.id), "right"], ["Kind", (row) => row.kind], ["Name", (row) => row.name], ["Uses left", (row) => number(row.uses_left), "right"], ["Until", (row) => new Date(row.expires_at / 1000).toLocaleDateString()], ["", (row) => (row.revoked_at ? "revoked" : !row.uses_left ? "used up" : act("Revoke", () => ask("POST", `/invites/${row.id}/revoke`, {}), "", `invite ${row.id}`))]])),
    section("Download", el("div", { className: "choices bar" }, ...Object.entries(FORMATS).map(([format, ending]) => el("button", { type: "button", "data-key": format, onclick: () => download(`/export?format=${format}${format === "pairs" && view.kind !== "preference" ? "&margin=0" : ""}`, `${format}.${ending}`.replace(/^(\w+)\.\1$/, "judgments.$1")) }, format)))));
}

function tiles(view, agreement) {
  const fit = view.fit, ahead = view.forecast;
  const finish = ahead.finish ? new Date(ahead.finish / 1000).toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }) : "";
  return el("div", { className: "tiles" },
    tile("Judgments", view.judgments.n, `${number(view.judgments.last_hour)} in the last hour; ${number(ahead.judgments)} to come`),
    tile("Cost", `${number(view.cost.spent)} of ${number(view.cost.budget)}`, `${number(view.cost.reserved - view.cost.spent)} promised; about ${number(ahead.cost)} in all${ahead.cost > view.cost.budget ? ", more than the budget" : ""}`),
    ahead.judgments === 0 && view.judgments.n ? tile("Forecast", "all answered", "nothing is left to ask at the moment")
      : tile("Forecast", finish || "–", finish ? "about then, at the pace of the last hour" : view.state === "open" ? "after the first judgments" : ""),
    tile("Agreement (alpha)", agreement?.alpha, agreement?.lower == null ? "" : `95 %: ${span(agreement.lower, agreement.upper)}`),
    tile("Spares", view.judgments.spare, `${number(view.judgments.withdrawn)} withdrawn, ${number(view.judgments.unpaid)} unpaid`),
    tile("Consensus", fit.as_of_seq ? `as of ${number(fit.as_of_seq)}` : "none yet", el("span", { id: "age" }), fit.error ? el("span", { className: "bad" }, fit.error) : newer(fit)));
}

// what the consensus lacks: judgments since the fit, unless their items were read anew
function newer(fit) {
  return `${number(fit.newer)} newer${fit.newer && fit.updated_seq ? `, read anew up to ${number(fit.updated_seq)}` : ""}`;
}

function stale(fit) {
  if (!fit.newer || fit.reads_anew == null) return null;
  const words = fit.updated_seq ? `Scores, ranks and intervals are those of the fit. “Since the fit” is the score with the judgments up to ${number(fit.updated_seq)}, annotators and other items as in the fit.`
    : `${number(fit.newer)} newer ${fit.newer === 1 ? "judgment is" : "judgments are"} not in these scores${fit.reads_anew ? " yet" : ` before the next fit: ${fit.method} is only fitted as a whole`}.`;
  return el("p", { className: "dim", id: "stale" }, words);
}

// what is answered, what is out, and what is still wanted, as one bar
function progress(view) {
  const out = view.requests.offered ?? 0, answered = Math.max(0, view.targets.taken - out), open = Math.max(0, view.targets.wanted - view.targets.taken);
  const parts = [["answered", answered], ["out", out], ["open", open]];
  const all = Math.max(1, answered + out + open);
  const ended = ["skipped", "expired"].map((name) => `${number(view.requests[name] ?? 0)} ${name}`).join(", ");
  return section("Progress", el("div", { className: "stack", role: "img", "aria-label": parts.map(([name, n]) => `${n} ${name}`).join(", ") },
    ...parts.map(([name, n]) => { const piece = el("span", { className: name }); piece.style.flexGrow = n / all; return piece; })),
  el("p", {}, ...parts.flatMap(([name, n]) => [el("span", { className: `key ${name}` }), ` ${number(n)} ${name}   `]), el("span", { className: "dim" }, `${ended}; ${number(view.targets.open)} of ${number(view.targets.n)} targets open`)));
}

function annotatorTable(rows, judged) {
  const to = (row, state, words, sure, judgments) => act(words, () => ask("POST", `/annotators/${row.id}`, { state, ...(judgments ? { judgments } : {}) }), sure, row.name);
  const checks = (row) => { const found = judged[row.name]?.checks; return found ? el("span", { className: found.below_chance ? "bad" : "" }, `${found.right} of ${found.n}${found.below_chance ? ", below chance" : ""}`) : "–"; };
  const flag = (row) => { const found = judged[row.name]; return found?.action ? el("span", { className: found.action === "keep" ? "" : "bad" }, `${found.action}: ${found.reason}`) : "–"; };
  const quality = (row) => (judged[row.name]?.measured === false ? el("span", { className: "dim", title: "Nobody else has judged an item that they did." }, "not measured yet") : number(judged[row.name]?.quality));
  const tools = (row) => (row.state === "removed" ? "" : el("div", { className: "tools" },
    row.state === "paused" ? to(row, "active", "Go on", "") : to(row, "paused", "Pause", ""),
    to(row, "removed", "Remove", `Remove ${row.name}, and keep their judgments?`), to(row, "removed", "Uncount", `Remove ${row.name}, and let their judgments count no more?`, "uncount")));
  return table(rows, [["Name", (row) => row.name], ["Kind", (row) => row.kind], ["State", (row) => row.state], ["Judged", (row) => number(row.n_answered), "right"], ["Quality", quality, "right"], ["Interval", (row) => span(judged[row.name]?.quality_lower ?? judged[row.name]?.lower, judged[row.name]?.quality_upper ?? judged[row.name]?.upper), "right"], ["Checks", checks], ["Suggested", flag, "wide"], ["", tools]], "Nobody yet; invite somebody.");
}

function disputed(rows) {
  if (!rows?.length) return table([], []);
  return table(rows, Object.keys(rows[0]).map((name) => [name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase()), (row) => number(row[name]), typeof rows[0][name] === "number" ? "right" : ""]));
}

function invite() {
  const field = (id, words, node) => el("p", {}, el("label", { for: id }, words), " ", node);
  const kind = el("select", { id: "kind" }, el("option", { value: "person" }, "people"), el("option", { value: "program" }, "programs"));
  const uses = el("input", { id: "uses", type: "number", min: "1", max: "100000", value: "10", required: true }), days = el("input", { id: "days", type: "number", min: "1", max: "3650", value: "30", required: true });
  const make = async (event) => {
    event.preventDefault();
    dialog.close();
    try {
      const made = await ask("POST", "/invites", { kind: kind.value, uses: Number(uses.value), days: Number(days.value) });
      const text = kind.value === "person" ? made.link : made.token;
      links.unshift(el("p", { className: "item" }, `Shown this once, for ${uses.value} ${kind.value === "person" ? "people" : "programs"}: `, el("code", {}, text), " ", el("button", { type: "button", onclick: () => navigator.clipboard?.writeText(text).then(() => say("Copied.")) }, "Copy")));
      drawn = [];
      await refresh();
    } catch (error) { say(error.message, true); }
  };
  dialog.setAttribute("aria-label", "Invite");
  dialog.replaceChildren(el("h2", {}, "Invite"), el("form", { onsubmit: make }, field("kind", "For", kind), field("uses", "How many", uses), field("days", "Days that it can be used", days),
    el("div", { className: "choices" }, el("button", { className: "main" }, "Make it"), el("button", { type: "button", onclick: () => dialog.close() }, "Back"))));
  dialog.showModal();
}

const given = location.hash.slice(1);
if (given.startsWith("cro_")) { sessionStorage.setItem("crowdrank.owner", given); history.replaceState(null, "", location.pathname); }
token = sessionStorage.getItem("crowdrank.owner") ?? "";
addEventListener("visibilitychange", () => { if (document.visibilityState === "visible" && token) refresh(); });
if (token) refresh(); else signIn();
