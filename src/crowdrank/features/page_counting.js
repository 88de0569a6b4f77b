// Counts in a rendered page: what is on the whole of it, and what on its first screen. It returns numbers only.
(width, height, maxElements, maxTexts) => {
  const noText = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "TEXTAREA", "OPTION"]);
  const images = new Set(["IMG", "SVG", "CANVAS", "VIDEO"]);
  const fresh = () => ({texts: 0, links: 0, fonts: new Set(), characters: 0, sizes: 0, tables: 0,
                        colours: new Set(), images: 0});
  const whole = fresh(), first = fresh();
  const opacity = new Map(), visible = new Map();
  const seen = element => {
    if (visible.has(element)) return visible.get(element);
    const style = getComputedStyle(element);
    const above = opacity.get(element.parentElement);  // a parent is looked at before what is in it
    opacity.set(element, (above === undefined ? 1 : above) * parseFloat(style.opacity));
    const boxes = [...element.getClientRects()].filter(box => box.width >= 1 && box.height >= 1);
    const shown = boxes.length > 0 && style.visibility === "visible" && opacity.get(element) > 0.05;
    const found = shown ? {style, boxes} : false;
    visible.set(element, found);
    return found;
  };
  const onFirst = boxes => boxes.some(box => box.bottom > 0 && box.right > 0 && box.top < height && box.left < width);
  const elements = document.body ? [document.body, ...document.body.querySelectorAll("*")] : [];
  if (elements.length > maxElements) return {too_large: 1};
  const count = (places, change) => places.forEach(change);
  for (const element of elements) {
    const found = seen(element);
    if (!found) continue;
    const places = onFirst(found.boxes) ? [whole, first] : [whole];
    const tag = element.tagName.toUpperCase();
    if (tag === "TABLE") count(places, place => place.tables++);
    if (images.has(tag) || (tag === "INPUT" && element.type === "image")) count(places, place => place.images++);
    const colour = found.style.backgroundColor;
    if (colour !== "transparent" && !/^rgba\(.*, 0\)$/.test(colour)) count(places, place => place.colours.add(colour));
  }
  const walker = document.createTreeWalker(document.body || document, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let texts = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    const length = node.data.replace(/\s+/g, " ").trim().length;
    if (!length || !parent || noText.has(parent.tagName.toUpperCase())) continue;
    if (++texts > maxTexts) return {too_large: 1};
    const found = seen(parent);
    if (!found) continue;
    range.selectNodeContents(node);
    const places = onFirst([...range.getClientRects()]) ? [whole, first] : [whole];
    const style = found.style, size = parseFloat(style.fontSize) || 0;
    const font = [style.fontFamily.split(",")[0], Math.round(size), style.fontWeight, style.fontStyle].join("|");
    const linked = parent.closest("a[href]") !== null;
    count(places, place => {
      place.texts++;
      place.links += linked ? 1 : 0;
      place.fonts.add(font);
      place.characters += length;
      place.sizes += length * size;
    });
  }
  const tops = [document.documentElement, document.body].filter(element => element);
  const found = {height: Math.max(...tops.map(element => element.scrollHeight))};
  for (const [name, place] of [["whole", whole], ["first", first]]) {
    for (const key of ["texts", "links", "characters", "sizes", "tables", "images"]) {
      found[name + "_" + key] = place[key];
    }
    found[name + "_fonts"] = place.fonts.size;
    found[name + "_colours"] = place.colours.size;
  }
  return found;
}
