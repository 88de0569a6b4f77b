"use strict";
for (const box of document.querySelectorAll(".table")) {
  const data = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
  const body = box.querySelector("tbody");
  const heads = Array.from(box.querySelectorAll("th"));
  const search = box.querySelector("input");
  const count = box.querySelector(".count");
  const former = box.querySelector(".former");
  const next = box.querySelector(".next");
  const words = data.rows.map((row) => row.filter((cell) => typeof cell === "string").join("\n").toLowerCase());
  let found = data.rows.map((row, place) => place);
  let sorted = { column: -1, falling: false };
  let page = 0;

  const shown = (cell, column) => {
    if (cell === null) return "";
    if (column.digits === null) return cell;
    return cell.toLocaleString("en-US", { minimumFractionDigits: column.digits, maximumFractionDigits: column.digits });
  };

  const draw = () => {
    const start = page * data.page;
    const rows = found.slice(start, start + data.page).map((place) => {
      const line = document.createElement("tr");
      data.rows[place].forEach((cell, number) => {
        const column = data.columns[number];
        const field = document.createElement("td");
        field.className = column.style;
        if (column.kind === "link" && cell !== null && /^https?:\/\//i.test(cell)) {
          const link = document.createElement("a");
          link.href = cell;
          link.rel = "noopener noreferrer nofollow";
          link.textContent = "open";
          field.append(link);
        } else {
          field.textContent = shown(cell, column);
        }
        line.append(field);
      });
      return line;
    });
    body.replaceChildren(...rows);
    const last = Math.min(start + data.page, found.length);
    count.textContent = found.length
      ? `${(start + 1).toLocaleString("en-US")}–${last.toLocaleString("en-US")} of ${found.length.toLocaleString("en-US")}`
      : "nothing found";
    former.disabled = page === 0;
    next.disabled = last >= found.length;
  };

  const arrange = () => {
    const wanted = search.value.trim().toLowerCase();
    found = data.rows.map((row, place) => place).filter((place) => !wanted || words[place].includes(wanted));
    if (sorted.column >= 0) {
      const sign = sorted.falling ? -1 : 1;
      const key = (place) => data.rows[place][sorted.column];
      const texts = new Intl.Collator("en", { numeric: true });
      found.sort((one, other) => {
        const a = key(one), b = key(other);
        if (a === null || b === null) return (a === null) - (b === null) || one - other;
        const order = typeof a === "number" ? a - b : texts.compare(a, b);
        return sign * order || one - other;
      });
    }
    page = 0;
    draw();
  };

  heads.forEach((head, number) => {
    head.querySelector("button").addEventListener("click", () => {
      const again = sorted.column === number;
      sorted = { column: number, falling: again ? !sorted.falling : data.columns[number].digits !== null };
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sorted.falling ? "descending" : "ascending");
      arrange();
    });
  });
  search.addEventListener("input", arrange);
  former.addEventListener("click", () => { page -= 1; draw(); });
  next.addEventListener("click", () => { page += 1; draw(); });
  box.querySelectorAll(".controls").forEach((part) => { part.hidden = false; });
  draw();
}
