// Markdown as a fixed set of elements: whatever else a text holds, tags included, is shown as text.

import { el } from "/static/kit.js";
import { maths } from "/static/maths.js";
import { highlighted } from "/static/code.js";

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const BREAK = [FENCE, /^\s{0,3}#{1,6}\s/, /^\s{0,3}>/, RULE, /^\s{0,3}(\$\$|\\\[)/];
const MOST_LEVELS = 12, MOST_INLINE = 20_000;

export function markdown(text) {
  return blocks(el("div", { className: "markdown" }), text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

const indent = (line) => /^ */.exec(line.replace(/\t/g, "    "))[0].length;

function blocks(out, lines, level) {
  if (level > MOST_LEVELS) { out.append(lines.join("\n")); return out; }
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    let found;
    if (!line.trim()) at += 1;
    else if ((found = FENCE.exec(line))) {
      const code = [], depth = indent(line);
      for (at += 1; at < lines.length && !lines[at].trim().startsWith(found[1]); at += 1) code.push(lines[at].slice(Math.min(depth, indent(lines[at]))));
      at += 1;
      out.append(found[2] === "math" ? maths(code.join("\n"), true) : pre(code.join("\n"), found[2]));
    } else if ((found = /^\s{0,3}(?:\$\$|\\\[)(.*)$/.exec(line))) {
      const formula = [];
      for (let rest = found[1]; ; rest = lines[at]) {
        at += 1;
        const end = /^(.*?)(?:\$\$|\\\])/.exec(rest);
        formula.push(end ? end[1] : rest);
        if (end || at >= lines.length) break;
      }
      out.append(maths(formula.join("\n"), true));
    } else if ((found = /^\s{0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line))) {
      // the page's own headings are h1 and h2
      out.append(inline(el(`h${Math.min(6, found[1].length + 2)}`, { dir: "auto" }), found[2]));
      at += 1;
    } else if (RULE.test(line)) {
      out.append(el("hr"));
      at += 1;
    } else if (/^\s{0,3}>/.test(line)) {
      const quote = [];
      for (; at < lines.length && (/^\s{0,3}>/.test(lines[at]) || (quote.length && lines[at].trim() && !BREAK.some((one) => one.test(lines[at])))); at += 1) quote.push(lines[at].replace(/^\s{0,3}> ?/, ""));
      out.append(blocks(el("blockquote"), quote, level + 1));
    } else if (ITEM.test(line)) at = list(out, lines, at, level);
    else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) at = table(out, lines, at);
    else if (indent(line) >= 4 && level === 0) {
      const code = [];
      for (; at < lines.length && (indent(lines[at]) >= 4 || (!lines[at].trim() && indent(lines[at + 1] ?? "") >= 4)); at += 1) code.push(lines[at].replace(/^( {4}|\t)/, ""));
      out.append(pre(code.join("\n"), ""));
    } else {
      const words = [line];
      for (at += 1; at < lines.length && lines[at].trim() && !BREAK.some((one) => one.test(lines[at])) && !ITEM.test(lines[at]); at += 1) {
        if (/^\s{0,3}(=+|-+)\s*$/.test(lines[at])) break;
        words.push(lines[at]);
      }
      if (/^\s{0,3}(=+|-+)\s*$/.test(lines[at] ?? "")) {
        out.append(inline(el(lines[at].includes("=") ? "h3" : "h4", { dir: "auto" }), words.join(" ")));
        at += 1;
      } else out.append(inline(el("p", { dir: "auto" }), words.map((one) => one.trimStart()).join("\n")));
    }
  }
  return out;
}

// a list and what stands deeper than its marks: paragraphs, code, other lists
function list(out, lines, start, level) {
  const [, space, mark] = ITEM.exec(lines[start]), depth = indent(lines[start]), ordered = /\d/.test(mark);
  const made = el(ordered ? "ol" : "ul", { dir: "auto", ...(ordered && parseInt(mark, 10) !== 1 ? { start: String(parseInt(mark, 10)) } : {}) });
  let at = start;
  while (at < lines.length) {
    const found = ITEM.exec(lines[at]);
    if (!found || indent(lines[at]) < depth || indent(lines[at]) > depth + 1 || /\d/.test(found[2]) !== ordered || RULE.test(lines[at])) break;
    const inner = depth + found[2].length + Math.min(found[3].length, 4), body = [found[4]];
    for (at += 1; at < lines.length; at += 1) {
      const line = lines[at];
      if (!line.trim()) { if (indent(lines[at + 1] ?? "") <= depth || !(lines[at + 1] ?? "").trim()) break; body.push(""); }
      else if (indent(line) > depth && !(ITEM.test(line) && indent(line) <= depth)) body.push(line.replace(/\t/g, "    ").slice(Math.min(inner, indent(line))));
      else if (ITEM.test(line) || indent(line) < depth || BREAK.some((one) => one.test(line))) break;
      else body.push(line.trimStart());
    }
    while (at < lines.length && !lines[at].trim() && ITEM.test(lines[at + 1] ?? "") && indent(lines[at + 1]) >= depth) at += 1;
    const task = /^\[([ xX])\]\s+(.*)$/.exec(body[0]);
    const item = el("li");
    if (task) { item.append(el("span", { className: "task", role: "img", "aria-label": task[1] === " " ? "open" : "done" }, task[1] === " " ? "☐ " : "☑ ")); body[0] = task[2]; }
    const inside = blocks(el("div"), body, level + 1);
    // a line alone needs no paragraph
    if (inside.firstElementChild?.tagName === "P") item.append(...inside.firstElementChild.childNodes, ...[...inside.children].slice(1));
    else item.append(...inside.childNodes);
    made.append(item);
  }
  out.append(made);
  return Math.max(at, start + 1);
}

function cells(line) {
  return line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((one) => one.trim().replace(/\\\|/g, "|"));
}

function table(out, lines, start) {
  const sides = cells(lines[start + 1]).map((one) => (/^:-+:$/.test(one) ? "center" : /-:$/.test(one) ? "end" : "start"));
  const row = (line, name) => el("tr", {}, ...cells(line).map((cell, place) => inline(el(name, { dir: "auto", className: sides[place] ?? "start" }), cell)));
  const body = el("tbody");
  let at = start + 2;
  for (; at < lines.length && lines[at].includes("|") && lines[at].trim(); at += 1) body.append(row(lines[at], "td"));
  out.append(el("div", { className: "across", tabindex: "0", role: "group", "aria-label": "Table" }, el("table", {}, el("thead", {}, row(lines[start], "th")), body)));
  return at;
}

export function pre(code, language) {
  return el("pre", { dir: "ltr", tabindex: "0", role: "group", "aria-label": language ? `Code, ${language}` : "Code" }, language ? el("span", { className: "language", "aria-hidden": "true" }, language) : null, highlighted(code, language));
}

const INLINE = new RegExp([
  "(?<escape>\\\\[!-/:-@\\[-`{-~])(?<!\\\\[(])", "(?<ticks>`+)(?<code>[^]*?[^`])\\k<ticks>(?!`)", "\\$\\$(?<display>[^$]+)\\$\\$", "\\$(?<maths>[^\\s$](?:[^$\\n]*[^\\s$\\\\])?)\\$(?!\\d)", "\\\\\\((?<round>[^]+?)\\\\\\)",
  "!\\[(?<alt>[^\\]\\n]*)\\]\\((?<image>https:\\/\\/[^\\s)]+)[^)\\n]*\\)", "\\[(?<words>(?:[^\\[\\]\\n]|\\[[^\\]\\n]*\\])+)\\]\\((?<link>https?:\\/\\/[^\\s)]+)[^)\\n]*\\)", "<(?<auto>https?:\\/\\/[^\\s>]+)>", "(?<bare>https?:\\/\\/[^\\s<>\"']*[^\\s<>\"'.,;:!?)\\]])",
  "(?<mark>\\*\\*|__)(?=\\S)(?<strong>[^]*?\\S)\\k<mark>", "(?<!\\w)_(?=\\S)(?<low>[^_]*?\\S)_(?!\\w)", "\\*(?=\\S)(?<em>[^*]*?\\S)\\*", "~~(?=\\S)(?<struck>[^~]*?\\S)~~", "(?<line>(?: {2,}|\\\\)\\n)",
].join("|"), "u");

const away = (href, child) => el("a", { href, rel: "noopener noreferrer", target: "_blank" }, child);

function inline(node, text, level = 0) {
  if (text.length > MOST_INLINE) { node.append(text); return node; }
  for (let rest = text; rest;) {
    const found = level > MOST_LEVELS ? null : INLINE.exec(rest);
    if (!found) { node.append(rest); break; }
    node.append(rest.slice(0, found.index));
    const it = found.groups;
    if (it.escape) node.append(it.escape.slice(1));
    else if (it.code) node.append(el("code", { dir: "ltr" }, it.code.replace(/^ (.+) $/, "$1")));
    else if (it.display) node.append(maths(it.display, true));
    else if (it.maths ?? it.round) node.append(maths(it.maths ?? it.round, false));
    else if (it.image) node.append(el("img", { src: it.image, alt: it.alt, referrerpolicy: "no-referrer", loading: "lazy" }));
    else if (it.link) node.append(inline(away(it.link, ""), it.words, level + 1));
    else if (it.auto ?? it.bare) node.append(away(it.auto ?? it.bare, it.auto ?? it.bare));
    else if (it.strong) node.append(inline(el("strong"), it.strong, level + 1));
    else if (it.low ?? it.em) node.append(inline(el("em"), it.low ?? it.em, level + 1));
    else if (it.struck) node.append(inline(el("del"), it.struck, level + 1));
    else node.append(el("br"));
    rest = rest.slice(found.index + found[0].length);
  }
  return node;
}
