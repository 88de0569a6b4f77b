// The owner's page: polls every five seconds, with tags so that what has not changed is not sent again.

import { el } from "/static/kit.js";

const main = document.getElementById("main"), status = document.getElementById("status");
const tags = {}, seen = {};
let token = "";

function say(text, bad = false) { status.textContent = text; status.className = bad ? "bad" : ""; }

async function ask(method, path, body) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...(method === "GET" && tags[path] ? { "if-none-match": tags[path] } : {}) };
  const response = await fetch(`/api/v1${path}`, { method, headers, body: body && JSON.stringify(body), cache: "no-store" });
  if (response.status === 304) return seen[path];
  const found = await response.json();
  if (!response.ok) throw Object.assign(new Error(found.error?.message ?? response.status), { status: response.status });
  if (method === "GET") { tags[path] = response.headers.get("etag"); seen[path] = found; }
  return found;
}

async function download(path, name) {
  say("Preparing …");
  const response = await fetch(`/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) return say((await response.json()).error?.message ?? "It did not work.", true);
  const link = el("a", { href: URL.createObjectURL(await response.blob()), download: name });
  document.body.append(link); link.click(); link.remove();
  return say("");
}

function signIn() {
  const field = el("input", { id: "token", type: "password", autocomplete: "off" });
  main.replaceChildren(el("form", { onsubmit: (event) => { event.preventDefault(); token = field.value.trim(); sessionStorage.setItem("crowdrank.owner", token); refresh(); } },
    el("p", {}, el("label", { for: "token" }, "The owner's token, from the first start")), field, " ", el("button", { className: "main" }, "Open")));
}

const number = (value) => (value == null ? "–" : typeof value === "number" && !Number.isInteger(value) ? value.toFixed(2).replace(/^-0\.00$/, "0.00") : String(value));
const tile = (name, value, more = "") => el("div", { className: "tile" }, name, el("b", {}, number(value)), more);

function table(rows, columns) {
  if (!rows?.length) return el("p", {}, "Nothing yet.");
  return el("div", { className: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...columns.map(([name]) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...columns.map(([, cell]) => el("td", { dir: "auto" }, cell(row) ?? "–")))))));
}

const act = (words, what, sure) => el("button", { type: "button", onclick: async () => { if (sure && !confirm(sure)) return; try { await what(); await refresh(); } catch (error) { say(error.message, true); } } }, words);

async function refresh() {
  try {
    const maybe = (path) => ask("GET", path).catch((error) => { if (error.status === 404) return null; throw error; });
    const view = await ask("GET", "/campaign");
    const [quality, agreement, consensus, annotators, skipped, spares, invites] = [await maybe("/quality"), await maybe("/agreement"), await maybe("/consensus"), await ask("GET", "/annotators"), await ask("GET", "/skipped"), await ask("GET", "/spares"), await ask("GET", "/invites")];
    if (!main.contains(document.activeElement) || document.activeElement === main || document.activeElement.tagName === "BUTTON") draw(view, quality, agreement, consensus, annotators, skipped, spares, invites);
    if (status.className !== "bad") say(`as of ${new Date().toLocaleTimeString()}`);
  } catch (error) {
    if (error.status === 401 || error.status === 403) { sessionStorage.removeItem("crowdrank.owner"); say(error.message, true); return signIn(); }
    say(error.message, true);
  }
  clearTimeout(refresh.timer);
  refresh.timer = setTimeout(refresh, document.visibilityState === "visible" ? 5000 : 60000);
}

function draw(view, quality, agreement, consensus, annotators, skipped, spares, invites) {
  document.getElementById("title").textContent = `${view.name} (${view.state})`;
  document.title = view.name;
  const fit = view.fit, alpha = agreement?.alpha;
  const finish = view.estimated_finish ? new Date(view.estimated_finish / 1000).toLocaleString() : null;
  const state = (to, words, sure) => act(words, () => ask("POST", "/campaign/state", { state: to }), sure);
  const grade = Object.fromEntries((quality?.annotators ?? []).map((row) => [row.annotator, row]));
  main.replaceChildren(
    el("div", { className: "tiles" },
      tile("Judgments", view.judgments.n, `${view.judgments.last_hour} in the last hour`),
      tile("Requests out", view.requests.offered ?? 0, `${view.targets.open} of ${view.targets.n} targets open`),
      tile("Cost", `${view.cost.spent} of ${view.cost.budget}`, `${view.cost.reserved - view.cost.spent} promised`),
      tile("Agreement (alpha)", alpha, agreement?.lower == null ? "" : `${number(agreement.lower)} to ${number(agreement.upper)}`),
      tile("Spares", view.judgments.spare, `${view.judgments.withdrawn} withdrawn, ${view.judgments.unpaid} unpaid`),
      tile("Consensus", fit.as_of_seq ? `as of ${fit.as_of_seq}` : "none yet", fit.error ?? `${fit.newer} newer${fit.age == null ? "" : `, ${Math.round(fit.age)} s old`}${fit.final ? ", final" : ""}`)),
    el("p", {}, el("label", {}, "Progress ", el("progress", { value: view.targets.taken, max: Math.max(1, view.targets.wanted) })), finish ? ` Done about ${finish}.` : ""),
    el("p", { className: "choices" }, view.state === "open" ? state("paused", "Pause") : view.state === "paused" ? state("open", "Go on") : null, view.state === "closed" ? null : state("closed", "Close", "Close the campaign for good?"),
      invite("person", "Invite people"), invite("program", "Invite a program"),
      el("button", { type: "button", onclick: () => download("/report", "report.html") }, "Full report"),
      ...["jsonl", "csv", "parquet", "native", "label-studio", "argilla", "qrels", "pairs"].map((format) => el("button", { type: "button", onclick: () => download(`/export?format=${format}`, `judgments.${format}`) }, `Download ${format}`))),
    el("div", { id: "links" }, ...links),
    el("h2", {}, "Consensus"), table(consensus?.items?.slice(0, 200), [["Query", (row) => row.query], ["Item", (row) => row.item], ["Rank", (row) => number(row.rank)], ["Score", (row) => number(row.score)], ["Interval", (row) => (row.lower == null ? "–" : `${number(row.lower)} to ${number(row.upper)}`)], ["Ranks", (row) => (row.rank_lower == null ? "–" : `${row.rank_lower} to ${row.rank_upper}`)]]),
    el("h2", {}, "Annotators"), table(annotators.annotators, [["Name", (row) => row.name], ["Kind", (row) => row.kind], ["State", (row) => row.state], ["Judged", (row) => number(row.n_answered)], ["Quality", (row) => number(grade[row.name]?.quality)], ["Checks", (row) => { const checks = grade[row.name]?.checks; return checks ? `${checks.right} of ${checks.n}${checks.below_chance ? ", below chance" : ""}` : "–"; }], ["Suggested", (row) => (grade[row.name]?.action ? `${grade[row.name].action}: ${grade[row.name].reason}` : "–")],
      ["", (row) => (row.state === "removed" ? "" : el("span", {}, act("Remove", () => ask("POST", `/annotators/${row.id}`, { state: "removed" }), `Remove ${row.name} and keep their judgments?`), " ", act("Uncount", () => ask("POST", `/annotators/${row.id}`, { state: "removed", judgments: "uncount" }), `Remove ${row.name} and let their judgments count no more?`)))]]),
    el("h2", {}, "Disputed"), table(agreement?.disputed?.slice(0, 20), Object.keys(agreement?.disputed?.[0] ?? { item: 0 }).map((name) => [name, (row) => number(row[name])])),
    el("h2", {}, "Skipped by three or more"), table(skipped.skipped, [["Query", (row) => row.query], ["Items", (row) => row.items.join(", ")], ["Skips", (row) => number(row.n_skipped)], ["Reasons", (row) => row.reasons.join("; ")]]),
    el("h2", {}, "Spare judgments"), table(spares.spares.slice(0, 50), [["Judgment", (row) => number(row.seq)], ["Annotator", (row) => row.annotator], ["Items", (row) => row.items.join(", ")], ["Paid", (row) => (row.paid ? "yes" : "no")]]),
    el("h2", {}, "Invites"), table(invites.invites, [["Number", (row) => number(row.id)], ["Kind", (row) => row.kind], ["Name", (row) => row.name], ["Uses left", (row) => number(row.uses_left)], ["", (row) => (row.revoked_at ? "revoked" : act("Revoke", () => ask("POST", `/invites/${row.id}/revoke`, {})))]]));
}

const links = [];
function invite(kind, words) {
  return act(words, async () => {
    const uses = kind === "person" ? Number(prompt("For how many people?", "10")) || 1 : 1;
    const made = await ask("POST", "/invites", { kind, uses });
    links.unshift(el("p", {}, `Shown this once (${kind}, ${uses} ${uses === 1 ? "use" : "uses"}): `, el("code", {}, kind === "person" ? made.link : made.token)));
  });
}

const given = location.hash.slice(1);
if (given.startsWith("cro_")) { sessionStorage.setItem("crowdrank.owner", given); history.replaceState(null, "", location.pathname); }
token = sessionStorage.getItem("crowdrank.owner") ?? "";
if (token) refresh(); else signIn();
