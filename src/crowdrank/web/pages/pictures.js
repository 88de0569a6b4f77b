// Small pictures without a library: an interval, a line over time, and the curve of doubt against judgments.

const SVG = "http://www.w3.org/2000/svg";
const fixed = (value) => value.toFixed(2).replace(/^0\./, ".").replace(/^1\.00$/, "1");

function draw(name, given, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(given)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export const span = (low, high) => (low == null ? "–" : [low, high].map((one) => (Number.isInteger(low) && Number.isInteger(high) ? one.toLocaleString("en") : one.toFixed(2))).join(" to "));

const label = (x, y, words, anchor = "start") => draw("text", { x, y, "text-anchor": anchor }, words);
const line = (x1, y1, x2, y2, stroke, width = 1) => draw("line", { x1, y1, x2, y2, stroke, "stroke-width": width });

export const spark = {
  // quality from 0 to 1 with its interval; the mark at one half is guessing
  interval(value, low, high) {
    const at = (one) => 4 + 92 * Math.min(1, Math.max(0, one)), words = `${fixed(value)}${low == null ? "" : ` (${fixed(low)} to ${fixed(high)})`}`;
    return draw("svg", { width: 190, height: 22, viewBox: "0 0 190 22", role: "img", "aria-label": `quality ${words}` },
      line(4, 11, 96, 11, "var(--rule)", 2), line(50, 5, 50, 17, "var(--grey)"), ...(low == null ? [] : [line(at(low), 11, at(high), 11, "var(--sky)", 4)]),
      draw("circle", { cx: at(value), cy: 11, r: 4, fill: "var(--blue)" }), label(104, 15, words));
  },
  // agreement with others from part to part, 0 to 1
  line(values) {
    const at = (value, place) => [4 + (112 * place) / (values.length - 1), 22 - 20 * value];
    const last = at(values.at(-1), values.length - 1);
    return draw("svg", { width: 150, height: 24, viewBox: "0 0 150 24", role: "img", "aria-label": `agreement from ${fixed(values[0])} to ${fixed(values.at(-1))}` },
      draw("polyline", { points: values.map((value, place) => at(value, place).join(",")).join(" "), fill: "none", stroke: "var(--blue)", "stroke-width": 1.5 }), draw("circle", { cx: last[0], cy: last[1], r: 2.5, fill: "var(--blue)" }), label(122, 16, fixed(values.at(-1))));
  },
};

export function curve(course, ahead) {
  const known = course.filter((one) => one.doubt != null), last = known.at(-1);
  const future = last ? ahead.map((one) => ({ seq: last.seq + one.more, doubt: one.doubt, cost: one.cost, more: one.more })) : [];
  const [width, height, left, bottom] = [720, 240, 48, 34];
  const most = Math.max(1, ...known.map((one) => one.seq), ...future.map((one) => one.seq)), top = 1.1 * Math.max(0.01, ...known.map((one) => one.doubt));
  const x = (seq) => left + ((width - left - 20) * seq) / most, y = (doubt) => height - bottom - ((height - bottom - 12) * doubt) / top;
  const points = (rows) => rows.map((one) => `${x(one.seq)},${y(one.doubt)}`).join(" ");
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(share * most));
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": `Doubt was ${last ? fixed(last.doubt) : "not measured"}; ${future.map((one) => `after ${one.more} more judgments about ${fixed(one.doubt)}`).join(", ")}` },
    line(left, height - bottom, width - 20, height - bottom, "var(--rule)"), ...[0.5, 1].flatMap((share) => [line(left, y(share * top / 1.1), width - 20, y(share * top / 1.1), "var(--rule)"), label(left - 6, y(share * top / 1.1) + 4, fixed(share * top / 1.1), "end")]),
    ...ticks.map((seq) => label(x(seq), height - bottom + 16, seq.toLocaleString("en"), "middle")), label(width - 20, height - 2, "judgments", "end"), label(left, 8, "doubt"),
    draw("polyline", { points: points(known), fill: "none", stroke: "var(--blue)", "stroke-width": 2 }), ...known.map((one) => draw("circle", { cx: x(one.seq), cy: y(one.doubt), r: 2.5, fill: "var(--blue)" })),
    ...(last ? [draw("polyline", { points: points([last, ...future]), fill: "none", stroke: "var(--orange)", "stroke-width": 2, "stroke-dasharray": "6 5" })] : []),
    ...future.slice(0, 1).flatMap((one) => [draw("circle", { cx: x(one.seq), cy: y(one.doubt), r: 4, fill: "var(--orange)" }), label(x(one.seq) + 8, y(one.doubt) - 8, `+100: ${fixed(one.doubt)} for ${one.cost.toLocaleString("en")}`)]));
}
