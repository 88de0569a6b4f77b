// What a page lacks for people who see, hear or point in other ways: elements without a name, texts without contrast.
() => {
  const ACTIVE = 'button, input, select, a, iframe, img, [role], [tabindex="0"]';
  const named = (one) => one.ariaLabel || one.alt || one.title || one.labels?.length
    || one.getAttribute("aria-labelledby") || one.textContent.trim() || one.id === "status";
  const nameless = [...document.querySelectorAll(ACTIVE)]
    .filter((one) => one.checkVisibility() && !one.matches("main, [aria-hidden=true]") && !named(one))
    .map((one) => one.outerHTML.slice(0, 120));

  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const linear = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const behind = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      if (found.length && found[3] !== 0) return found;
    }
    return [255, 255, 255];
  };
  const faint = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || !node.checkVisibility() || node.closest(":disabled, script, noscript")) continue;
    const both = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((one, other) => other - one);
    const ratio = (both[0] + 0.05) / (both[1] + 0.05);
    if (ratio < 4.5) faint.push([text.data.trim().slice(0, 40), ratio.toFixed(2)]);
  }
  const root = document.documentElement;
  return { nameless, faint, wide: root.scrollWidth > root.clientWidth, titles: document.querySelectorAll("h1").length };
}
