// Formulas: the part of TeX that answers of people and models use, as MathML. What is not known stays as it was written.

const SPACE = "http://www.w3.org/1998/Math/MathML";
const SIGNS = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ϵ", varepsilon: "ε", zeta: "ζ", eta: "η", theta: "θ", iota: "ι", kappa: "κ", lambda: "λ", mu: "μ", nu: "ν", xi: "ξ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", upsilon: "υ", phi: "ϕ", varphi: "φ", chi: "χ", psi: "ψ", omega: "ω",
  Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Xi: "Ξ", Pi: "Π", Sigma: "Σ", Phi: "Φ", Psi: "Ψ", Omega: "Ω", ell: "ℓ", hbar: "ℏ", infty: "∞", emptyset: "∅", partial: "∂", nabla: "∇",
};
const OPERATORS = {
  times: "×", cdot: "⋅", div: "÷", pm: "±", mp: "∓", ast: "∗", star: "⋆", circ: "∘", bullet: "∙", oplus: "⊕", otimes: "⊗", le: "≤", leq: "≤", ge: "≥", geq: "≥", ne: "≠", neq: "≠", approx: "≈", equiv: "≡", sim: "∼", simeq: "≃", cong: "≅", propto: "∝", ll: "≪", gg: "≫",
  in: "∈", notin: "∉", ni: "∋", subset: "⊂", subseteq: "⊆", supset: "⊃", supseteq: "⊇", cup: "∪", cap: "∩", setminus: "∖", land: "∧", wedge: "∧", lor: "∨", vee: "∨", neg: "¬", forall: "∀", exists: "∃", to: "→", rightarrow: "→", leftarrow: "←", Rightarrow: "⇒", Leftarrow: "⇐", implies: "⟹", iff: "⟺", Leftrightarrow: "⇔", leftrightarrow: "↔", mapsto: "↦",
  mid: "∣", parallel: "∥", perp: "⊥", angle: "∠", ldots: "…", dots: "…", cdots: "⋯", vdots: "⋮", ddots: "⋱", prime: "′", langle: "⟨", rangle: "⟩", lfloor: "⌊", rfloor: "⌋", lceil: "⌈", rceil: "⌉", "{": "{", "}": "}", "|": "∥", colon: ":", "%": "%", $: "$", "&": "&", "#": "#", _: "_",
};
const LARGE = { sum: "∑", prod: "∏", coprod: "∐", int: "∫", iint: "∬", oint: "∮", bigcup: "⋃", bigcap: "⋂" };
const FUNCTIONS = new Set("sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log ln lg exp lim sup inf max min argmax argmin det dim ker gcd Pr mod arg deg".split(" "));
const ACCENTS = { hat: "^", widehat: "^", bar: "¯", overline: "¯", vec: "→", tilde: "~", widetilde: "~", dot: "˙", ddot: "¨" };
const STYLES = { mathbf: "bold", boldsymbol: "bold", mathbb: "double-struck", mathcal: "script", mathscr: "script", mathfrak: "fraktur", mathrm: "normal", mathit: "italic", operatorname: "normal", mathsf: "sans-serif", mathtt: "monospace" };
const DOUBLE = { C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ", E: "𝔼" };
const SPACES = { ",": "0.17em", ":": "0.22em", ";": "0.28em", "!": "-0.17em", " ": "0.3em", quad: "1em", qquad: "2em", "~": "0.3em" };
const FENCES = { matrix: ["", ""], pmatrix: ["(", ")"], bmatrix: ["[", "]"], vmatrix: ["|", "|"], cases: ["{", ""], aligned: ["", ""], align: ["", ""], "align*": ["", ""], array: ["", ""] };
const MOST_LEVELS = 60;

function node(name, children = [], given = {}) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// a formula that is nested beyond reason is shown as it was written
export function maths(source, block) {
  try { return formula(source, block); } catch { return node("math", [node("mtext", [source])]); }
}

function formula(source, block) {
  const tokens = source.match(/\\[a-zA-Z]+\*?|\\.|\d+(?:\.\d+)?|[^\s]/gsu) ?? [];
  let at = 0, levels = 0;

  function row(ends) {
    const parts = [];
    while (at < tokens.length && !ends(tokens[at])) parts.push(scripted());
    return spaced(parts);
  }
  // a function stands a little apart from what it is multiplied with and from its argument
  function spaced(parts) {
    const named = (one) => one?.dataset?.named ?? one?.firstElementChild?.dataset?.named, gap = () => node("mspace", [], { width: SPACES[","] });
    return parts.flatMap((one, at) => (named(one) ? [...(at && parts[at - 1].localName !== "mo" ? [gap()] : []), one, ...(at + 1 < parts.length && parts[at + 1].localName !== "mo" ? [gap()] : [])] : [one]));
  }
  const group = (parts) => (parts.length === 1 ? parts[0] : node("mrow", parts));

  function argument() {
    if (tokens[at] !== "{") return at < tokens.length ? atom() : node("mrow");
    at += 1;
    const parts = row((one) => one === "}");
    at += 1;
    return group(parts);
  }

  function words() {
    if (tokens[at] !== "{") return tokens[at++] ?? "";
    let text = "", depth = 0;
    do {
      const one = tokens[at++] ?? "}";
      depth += one === "{" ? 1 : one === "}" ? -1 : 0;
      if (one !== "{" && one !== "}") text += one;
    } while (depth > 0 && at < tokens.length);
    return text;
  }

  function scripted() {
    const base = atom();
    let below = null, above = null;
    while (tokens[at] === "_" || tokens[at] === "^" || tokens[at] === "'") {
      const sign = tokens[at++];
      if (sign === "'") above = node("mo", ["′"]);
      else if (sign === "_") below = argument();
      else above = argument();
    }
    const limits = base.dataset?.limits && block;
    if (below && above) return node(limits ? "munderover" : "msubsup", [base, below, above]);
    if (below) return node(limits ? "munder" : "msub", [base, below]);
    if (above) return node(limits ? "mover" : "msup", [base, above]);
    return base;
  }

  function table(name) {
    const rows = [[]];
    if (name === "array") words();
    const end = (one) => one === "&" || one === "\\\\" || one === "\\end";
    for (;;) {
      rows.at(-1).push(node("mtd", row(end), name === "cases" || name.startsWith("align") ? { style: "text-align: start" } : {}));
      const one = tokens[at++];
      if (one === "\\\\") rows.push([]);
      else if (one !== "&") break;
    }
    words();
    const body = node("mtable", rows.map((cells) => node("mtr", cells)));
    const [open, close] = FENCES[name] ?? ["", ""];
    return node("mrow", [...(open ? [node("mo", [open], { stretchy: "true" })] : []), body, ...(close ? [node("mo", [close], { stretchy: "true" })] : [])]);
  }

  function atom() {
    const one = tokens[at++];
    if (++levels > 4000) return node("mtext", [one ?? ""]);
    if (one === "{") { at -= 1; return argument(); }
    if (/^\d/.test(one)) return node("mn", [one]);
    if (/^\p{L}$/u.test(one)) return node("mi", [one]);
    if (!one.startsWith("\\")) return node("mo", [one === "-" ? "−" : one === "*" ? "∗" : one], /[([{|)\]}]/.test(one) ? { stretchy: "false" } : {});
    const name = one.slice(1);
    if (name in SIGNS) return node("mi", [SIGNS[name]]);
    if (name in OPERATORS) return node("mo", [OPERATORS[name]]);
    if (name in LARGE) { const made = node("mo", [LARGE[name]], { largeop: "true" }); if (name !== "int" && name !== "oint") made.dataset.limits = "yes"; return made; }
    if (FUNCTIONS.has(name)) { const made = node("mi", [name], { mathvariant: "normal" }); made.dataset.named = "yes"; if (/^(lim|sup|inf|max|min|argm)/.test(name)) made.dataset.limits = "yes"; return made; }
    if (name in SPACES) return node("mspace", [], { width: SPACES[name] });
    if (["frac", "dfrac", "tfrac"].includes(name)) return node("mfrac", [argument(), argument()]);
    if (["binom", "dbinom"].includes(name)) return node("mrow", [node("mo", ["("]), node("mfrac", [argument(), argument()], { linethickness: "0" }), node("mo", [")"])]);
    if (name === "sqrt") {
      if (tokens[at] !== "[") return node("msqrt", [argument()]);
      at += 1;
      const index = row((end) => end === "]");
      at += 1;
      return node("mroot", [argument(), group(index)]);
    }
    if (name in ACCENTS) return node("mover", [argument(), node("mo", [ACCENTS[name]], { stretchy: String(name.startsWith("wide") || name === "overline") })], { accent: "true" });
    if (name === "underline") return node("munder", [argument(), node("mo", ["_"])]);
    if (["text", "textbf", "textit", "mbox", "textrm"].includes(name)) return node("mtext", [words().replace(/\\ /g, " ")]);
    if (name in STYLES) {
      const text = words();
      if (STYLES[name] === "double-struck" && text in DOUBLE) return node("mi", [DOUBLE[text]], { mathvariant: "normal" });
      return node("mi", [text], STYLES[name] === "bold" ? { style: "font-weight: bold" } : { mathvariant: "normal" });
    }
    if (name === "left" || name === "right" || /^[bB]ig+[lr]?$/.test(name)) {
      const sign = (tokens[at++] ?? "").replace("\\", "");
      return sign === "." ? node("mrow") : node("mo", [OPERATORS[sign] ?? sign], { stretchy: "true" });
    }
    if (name === "begin" && levels < MOST_LEVELS * 60) return table(words());
    return node("mtext", [one]);
  }

  return node("math", [node("mrow", row(() => false))], block ? { display: "block" } : {});
}
