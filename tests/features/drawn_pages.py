"""Web pages for tests: written here, from nearly empty to crowded."""

import numpy as np

WORDS = ["tea", "coffee", "water", "juice", "milk", "cocoa", "lemon", "sugar", "honey", "ginger", "mint", "ice"]


def page(clutter, seed=0):
    """Return the source of a page with so many boxes of text, links and colours."""
    rng = np.random.default_rng([seed, clutter])
    boxes = []
    for number in range(clutter):
        colour = "#{:02x}{:02x}{:02x}".format(*rng.integers(60, 256, 3))
        words = " ".join(rng.choice(WORDS, 6))
        boxes.append(
            f'<div style="float:left;width:150px;padding:6px;background:{colour};font-size:{rng.integers(10, 22)}px">'
            f"<a href='p{number}.html'>{rng.choice(WORDS)}</a> {words}</div>"
        )
    return f"<!doctype html><html><body><h1>Drinks</h1><p>A page about drinks.</p>{''.join(boxes)}</body></html>"


def write_pages(folder, clutter, seed=0):
    """Write a site with one page for each number of boxes; the names tell nothing of the order."""
    for place, boxes in enumerate(clutter):
        name = f"site{(7 * place + 3) % len(clutter):02d}"
        (folder / name).mkdir(parents=True)
        (folder / name / "index.html").write_text(page(boxes, seed))
    return {f"site{(7 * place + 3) % len(clutter):02d}/index.html": boxes for place, boxes in enumerate(clutter)}
