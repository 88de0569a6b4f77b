// The campaigns of this service that one has a part in: as an annotator by cookie, or by the owner's token.

import { call, el } from "/static/kit.js";

const main = document.getElementById("main"), status = document.getElementById("status");
const number = (value) => value.toLocaleString("en");
const given = location.hash.slice(1);
if (given.startsWith("cro_")) { sessionStorage.setItem("crowdrank.owner", given); history.replaceState(null, "", location.pathname); }

function card(one) {
  const runs = one.judgments != null, page = `${one.place}${runs ? "/owner/" : "/j/"}`;
  const done = runs ? `${number(one.judgments)} judgments, ${number(one.spent)} of ${number(one.budget)} spent` : "you take part";
  const part = el("span", { className: "part" });
  if (runs) part.style.width = `${(100 * one.spent) / Math.max(1, one.budget)}%`;
  return el("li", {}, el("h2", {}, el("a", { href: page, dir: "auto" }, one.name)), el("p", { className: "muted" }, el("span", { className: `state ${one.state}` }, one.state), ` ${one.kind}s; ${done}; ${one.role}`),
    runs ? el("div", { className: "meter", "aria-hidden": "true" }, part) : null);
}

function signIn() {
  const field = el("input", { id: "token", type: "password", autocomplete: "off" });
  return el("form", { className: "panel", onsubmit: (event) => { event.preventDefault(); sessionStorage.setItem("crowdrank.owner", field.value.trim()); show(); } },
    el("p", {}, el("label", { for: "token" }, "Do you run a campaign? Your token opens it. Annotators come by the link that they were sent.")),
    el("div", { className: "row" }, field, el("button", { className: "main" }, "Open")));
}

async function show() {
  const token = sessionStorage.getItem("crowdrank.owner");
  try {
    const { campaigns } = await call("GET", "/campaigns", undefined, token ? { authorization: `Bearer ${token}` } : {});
    status.textContent = "";
    main.replaceChildren(...(campaigns.length ? [el("ul", { className: "campaigns" }, ...campaigns.map(card))] : []), ...(campaigns.some((one) => one.judgments != null) ? [] : [signIn()]));
  } catch (error) {
    sessionStorage.removeItem("crowdrank.owner");
    status.textContent = error.message; status.className = "bad";
    main.replaceChildren(signIn());
  }
}
show();
