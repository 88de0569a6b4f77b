// Code in colours that help to read it: comments, strings, numbers and the words that most languages share.

import { el } from "/static/kit.js";

const WORDS = new Set(("abstract and as assert async await begin bool boolean break case catch char class const continue def default defer del delete do double elif else elsif end enum except export extends extern final finally float fn for foreach from func function global goto if impl implements import in include instanceof int interface is lambda let long loop match mod module mut namespace new nil none None not null nullptr or override package pass private protected pub public raise readonly ref return self select static string struct super switch template then this throw throws trait true True false False try type typedef typeof undefined union unless unsafe unsigned until use using val var virtual void volatile where while with yield "
  + "SELECT FROM WHERE AND OR NOT INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE JOIN LEFT INNER ON GROUP BY ORDER LIMIT AS NULL PRIMARY KEY").split(" "));
const HASH = /^(py|python|sh|bash|zsh|shell|console|r|rb|ruby|perl|pl|yaml|yml|toml|ini|make|makefile|dockerfile|julia|jl|elixir|nim|cmake|)$/;
const DASHES = /^(sql|lua|haskell|hs|ada|elm|)$/;
const MOST_CHARACTERS = 100_000;

export function highlighted(code, language) {
  const node = el("code"), name = language.toLowerCase();
  if (code.length > MOST_CHARACTERS || ["text", "txt", "plain", "diff", "output"].includes(name)) { node.append(code); return node; }
  const comments = ["\\/\\*[^]*?\\*\\/", "<!--[^]*?-->"];
  if (HASH.test(name)) comments.push("(?<![\\w&$])#[^\\n]*");
  if (!/^(py|python|sh|bash|sql|yaml|yml|toml)$/.test(name)) comments.push("(?<![:\\w])\\/\\/[^\\n]*");
  if (DASHES.test(name) && name) comments.push("--[^\\n]*");
  const parts = new RegExp(`(?<comment>${comments.join("|")})|(?<string>"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'|\`(?:[^\`\\\\]|\\\\.)*\`)|(?<number>\\b(?:0[xXbB][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\b)|(?<word>[A-Za-z_][A-Za-z_0-9]*)(?<call>\\()?`, "g");
  let last = 0;
  for (const found of code.matchAll(parts)) {
    const it = found.groups;
    const kind = it.comment ? "comment" : it.string ? "string" : it.number ? "number" : WORDS.has(it.word) ? "keyword" : it.call ? "call" : "";
    if (!kind) continue;
    const text = it.word ?? found[0];
    node.append(code.slice(last, found.index), el("span", { className: `code-${kind}` }, text));
    last = found.index + text.length;
  }
  node.append(code.slice(last));
  return node;
}
