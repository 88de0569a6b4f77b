// A leaderboard that sorts, and a page that asks; ids and texts are set as text, never as HTML.
const make = (tag, text, attributes = {}) => {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};
const shown = (value) => (typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(4) : String(value ?? ""));

function board(model, el) {
  const rows = model.get("rows");
  const names = Object.keys(rows[0] ?? {});
  let by = null;
  let down = false;
  const table = make("table", null, { class: "crowdrank-board" });
  const low = Math.min(...rows.map((row) => row.lower ?? row.score));
  const high = Math.max(...rows.map((row) => row.upper ?? row.score));
  const place = (value) => `${(100 * (value - low)) / (high - low || 1)}%`;
  const draw = () => {
    table.replaceChildren();
    const head = table.appendChild(make("thead")).appendChild(make("tr"));
    for (const name of names) {
      const cell = head.appendChild(make("th", null, { scope: "col", "aria-sort": by === name ? (down ? "descending" : "ascending") : "none" }));
      const button = cell.appendChild(make("button", name.replaceAll("_", " "), { type: "button" }));
      button.onclick = () => {
        [by, down] = [name, by === name ? !down : typeof rows[0][name] === "number" && name !== "rank"];
        draw();
      };
    }
    if ("lower" in (rows[0] ?? {})) head.appendChild(make("th", "interval", { scope: "col" }));
    const sign = down ? -1 : 1;
    const order = by === null ? rows : [...rows].sort((a, b) => sign * (a[by] > b[by] ? 1 : a[by] < b[by] ? -1 : 0));
    const body = table.appendChild(make("tbody"));
    for (const row of order) {
      const line = body.appendChild(make("tr"));
      for (const name of names) line.appendChild(make("td", shown(row[name]), typeof row[name] === "number" ? { class: "number" } : {}));
      if ("lower" in row) {
        const bar = line.appendChild(make("td")).appendChild(make("div", null, { class: "bar", "aria-hidden": "true" }));
        const span = bar.appendChild(make("i"));
        [span.style.left, span.style.width] = [place(row.lower), `calc(${place(row.upper)} - ${place(row.lower)})`];
        bar.appendChild(make("b")).style.left = place(row.score);
      }
    }
  };
  draw();
  el.appendChild(table);
}

function ask(model, el) {
  const page = el.appendChild(make("div", null, { class: "crowdrank-ask", tabindex: "0", role: "group" }));
  let waiting = false;
  const send = (message) => {
    if (waiting) return;
    waiting = true;
    model.send({ ...message, number: model.get("question").number });
  };
  const draw = () => {
    waiting = false;
    const asked = model.get("question");
    page.replaceChildren(make("p", `${asked.done} judged${asked.left_over ? "" : "; nothing is left to ask"}`, { role: "status" }));
    if (asked.message) page.appendChild(make("p", asked.message, { role: "alert" }));
    if (asked.left_over) {
      if (asked.query) page.appendChild(make("p", asked.query, { class: "query" }));
      const choices = page.appendChild(make("div", null, { class: "items" }));
      for (const item of asked.items) choices.appendChild(make("div", item.text, { class: "item", "data-item": item.id }));
      const buttons = page.appendChild(make("div", null, { class: "answers" }));
      for (const [key, label, value] of asked.answers) {
        buttons.appendChild(make("button", `${label} [${key}]`, { type: "button" })).onclick = () => send({ answer: value });
      }
    }
    if (asked.done) page.appendChild(make("button", "undo [u]", { type: "button" })).onclick = () => send({ undo: true });
  };
  page.onkeydown = (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const asked = model.get("question");
    const found = (asked.left_over ? asked.answers : []).find(([key]) => key === event.key);
    if (found || (event.key === "u" && asked.done)) {
      event.preventDefault();
      event.stopPropagation(); // the notebook has keys of its own
      send(found ? { answer: found[2] } : { undo: true });
    }
  };
  model.on("change:question", draw);
  draw();
  return () => model.off("change:question", draw);
}

function render({ model, el }) {
  return model.get("asks") ? ask(model, el) : board(model, el);
}
export default { render };
