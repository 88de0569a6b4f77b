// Several questions on one request: each a group of its own, shown where its condition holds, sent together.

import { el } from "/static/kit.js";
import { ranking } from "/static/ranking.js";
import { t } from "/static/words.js";

export function form(request, old, { say, send }) {
  const given = old?.answers ?? {}, fields = [];
  let list = null;
  for (const question of request.questions) {
    const one = field(question, request, given[question.name], say, draw);
    if (one.list) list = one.list;
    fields.push(one);
  }

  function answers() {
    const found = {};
    for (const one of fields) {
      one.node.hidden = !holds(one.question.when, found);
      const value = one.node.hidden ? null : one.value();
      if (value) found[one.question.name] = value;
    }
    return found;
  }
  function draw() { answers(); }

  function sendAll() {
    const found = answers(), missing = fields.filter((one) => !one.node.hidden && one.question.required && !found[one.question.name]);
    for (const one of fields) one.node.classList.toggle("missing", missing.includes(one));
    if (missing.length) {
      say(t("needed", { words: missing[0].question.text }), true);
      missing[0].node.scrollIntoView({ block: "center" });
      (missing[0].node.querySelector("input, textarea") ?? missing[0].node).focus({ preventScroll: true });
      return null;
    }
    return send({ answers: found });
  }

  draw();
  const button = el("div", { className: "choices" }, el("button", { type: "button", className: "main", onclick: sendAll }, `${t("send")} `, el("kbd", { "aria-hidden": "true" }, "Enter")));
  return { list, fields: el("div", { className: "fields" }, ...fields.map((one) => one.node)), button, send: sendAll };
}

// whether what was answered so far is what a question waits for
function holds(when, found) {
  return Object.entries(when ?? {}).every(([name, wanted]) => {
    const value = found[name];
    if (!value || value.cant_tell) return false;
    const said = [value.label ?? value.choice ?? value.winner ?? value.value ?? value.grade].flat();
    return [wanted].flat().some((one) => said.includes(one));
  });
}

function field(question, request, old, say, draw) {
  const name = `q-${question.name}`, title = [question.text, question.required ? null : el("span", { className: "dim" }, ` (${t("optional")})`)];
  const radios = (rows, several = false) => {
    const boxes = rows.map(([words, value]) => {
      const box = el("input", { type: several ? "checkbox" : "radio", name, onchange: () => { if (several && box.checked) for (const other of boxes) if ((other.answer.cant_tell ?? false) !== (value.cant_tell ?? false)) other.box.checked = false; draw(); } });
      box.checked = old ? (several && !value.cant_tell ? old.choice?.includes(value.choice) ?? false : JSON.stringify(plain(old)) === JSON.stringify(plain(value))) : false;
      return { box, answer: value, node: el("label", {}, box, words) };
    });
    const node = el("fieldset", { className: "field", dir: "auto" }, el("legend", {}, ...title), el("div", { className: "choices bar" }, ...boxes.map((one) => one.node)));
    const value = () => {
      const chosen = boxes.filter((one) => one.box.checked);
      if (!chosen.length) return null;
      if (!several || chosen[0].answer.cant_tell) return chosen[0].answer;
      return { choice: chosen.map((one) => one.answer.choice) };
    };
    return { question, node, value };
  };
  const unsure = question.cant_tell ? [[t("cant_tell"), { cant_tell: true }]] : [];
  if (question.kind === "grade") return radios([...question.grades.map((label, grade) => [label, { grade, label }]), ...unsure]);
  if (question.kind === "choice") return radios([...question.choices.map((choice) => [choice, { choice }]), ...unsure], question.several);
  if (question.kind === "preference") {
    const side = (winner) => (question.strength.length ? question.strength.map((words, place) => [`${winner.toUpperCase()}: ${words}`, { winner, strength: place + 1 }]) : [[t(`${winner}_better`), { winner }]]);
    return radios([...side("a").reverse(), ...(question.ties ? [[t("tie"), { winner: "tie" }]] : []), ...side("b"), ...unsure]);
  }
  if (question.kind === "ranking") {
    const made = ranking(request, old, say, () => null);
    const node = el("p", { className: "field dim" }, question.text);
    return { question, node, list: made.list, value: () => ({ order: made.order() }) };
  }
  if (question.kind === "text") {
    const area = el("textarea", { id: name, maxlength: "5000", dir: "auto" });
    area.value = old?.text ?? "";
    return { question, node: el("div", { className: "field", dir: "auto" }, el("label", { className: "asked", for: name }, ...title), area), value: () => (area.value.trim() ? { text: area.value.trim() } : null) };
  }
  const slider = el("input", { id: name, type: "range", min: String(question.least), max: String(question.most), step: String(question.step) });
  let touched = Boolean(old && "value" in old), unknown = Boolean(old?.cant_tell);
  slider.value = touched ? String(old.value) : String((question.least + question.most) / 2);
  const shown = el("output", { for: name }, touched ? slider.value : "–");
  const move = () => { touched = true; unknown = false; if (box) box.checked = false; shown.textContent = slider.value; draw(); };
  for (const event of ["input", "pointerup", "keyup"]) slider.addEventListener(event, (happened) => { if (event !== "keyup" || happened.key !== "Tab") move(); });
  const box = question.cant_tell ? el("input", { type: "checkbox", onchange: () => { unknown = box.checked; draw(); } }) : null;
  if (box) box.checked = unknown;
  return {
    question, value: () => (unknown ? { cant_tell: true } : touched ? { value: Number(slider.value) } : null),
    node: el("div", { className: "field", dir: "auto" }, el("label", { className: "asked", for: name }, ...title), el("div", { className: "slider" }, el("span", { className: "dim" }, question.low), slider, el("span", { className: "dim" }, question.high), shown), box ? el("div", { className: "choices bar" }, el("label", {}, box, t("cant_tell"))) : null),
  };
}

const plain = (answer) => { const { label, ...rest } = answer; return rest; };
