// Two items beside each other: the words that only one of them has, and scrolling both together.

const MOST_WORDS = 6_000, MOST_EDITS = 1_500;

// words of an element with where they stand
function words(root) {
  const found = [], walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest("math, .language")) continue;
    for (const one of node.data.matchAll(/[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu)) found.push({ node, from: one.index, to: one.index + one[0].length, text: one[0] });
  }
  return found;
}

// the shortest edit between two lists (Myers), as the places that have no partner; null where they are too different
function alone(one, other) {
  const most = Math.min(MOST_EDITS, one.length + other.length), furthest = new Map([[1, 0]]), trace = [];
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(new Map(furthest));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? furthest.get(k + 1) ?? 0 : (furthest.get(k - 1) ?? 0) + 1;
      while (x < one.length && x - k < other.length && one[x].text === other[x - k].text) x += 1;
      furthest.set(k, x);
      if (x < one.length || x - k < other.length) continue;
      const gone = new Set(), added = new Set();
      for (let at = one.length, to = other.length, step = edits; step > 0; step -= 1) {
        const before = trace[step], diagonal = at - to;
        const up = diagonal === -step || (diagonal !== step && (before.get(diagonal - 1) ?? -1) < (before.get(diagonal + 1) ?? -1));
        const from = up ? diagonal + 1 : diagonal - 1, x0 = before.get(from) ?? 0;
        if (up) added.add(x0 - from); else gone.add(x0);
        at = x0; to = x0 - from;
      }
      return [gone, added];
    }
  }
  return null;
}

function wrap(list, places) {
  // words that follow each other become one mark; from the end on, so that what is before stays where it is
  for (let at = list.length - 1; at >= 0; at -= 1) {
    if (!places.has(at)) continue;
    const last = list[at];
    while (places.has(at - 1) && list[at - 1].node === last.node) at -= 1;
    const range = document.createRange();
    range.setStart(last.node, list[at].from);
    range.setEnd(last.node, last.to);
    range.surroundContents(document.createElement("mark"));
  }
}

// marks what differs; returns whether the two are alike enough for that to help
export function markDifferences(left, right) {
  const one = words(left), other = words(right);
  if (one.length > MOST_WORDS || other.length > MOST_WORDS) return false;
  const found = alone(one, other);
  if (!found) return false;
  wrap(one, found[0]);
  wrap(other, found[1]);
  return true;
}

export function unmark(root) {
  for (const mark of root.querySelectorAll("mark")) { const parent = mark.parentNode; mark.replaceWith(...mark.childNodes); parent.normalize(); }
}

// panes that scroll by themselves follow each other by the share that is read
export function scrollTogether(panes) {
  let leader = null, timer = 0;
  for (const pane of panes) {
    pane.addEventListener("scroll", () => {
      if (leader && leader !== pane) return;
      leader = pane;
      clearTimeout(timer);
      timer = setTimeout(() => { leader = null; }, 120);
      const share = pane.scrollTop / Math.max(1, pane.scrollHeight - pane.clientHeight);
      for (const other of panes) if (other !== pane) other.scrollTop = share * (other.scrollHeight - other.clientHeight);
    }, { passive: true });
  }
}
