"use strict";

// Adds sorting and filters to the table of rows. The page is complete without it.
(() => {
  const table = document.getElementById("rows");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator(undefined, { numeric: true });

  const value = (row, column) => {
    const cell = row.cells[column];
    return "v" in cell.dataset ? Number.parseFloat(cell.dataset.v) : cell.textContent;
  };

  const compare = (a, b) => (typeof a === "string" ? collator.compare(a, b) : a - b);
  const missingLast = (a, b) => Number.isNaN(a) - Number.isNaN(b);

  const sort = (header) => {
    const column = headers.indexOf(header);
    const direction = header.ariaSort === "ascending" ? "descending" : "ascending";
    const sign = direction === "ascending" ? 1 : -1;
    const keyed = rows.map((row) => [value(row, column), row]);
    keyed.sort(([a], [b]) => missingLast(a, b) || sign * compare(a, b));
    for (const other of headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", direction);
    body.append(...keyed.map(([, row]) => row));
  };

  for (const header of table.tHead.querySelectorAll("th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(header));
    header.append(button);
  }

  const byLabel = document.getElementById("by-label");
  const byClass = document.getElementById("by-class");
  const count = document.getElementById("count");

  const filter = () => {
    let shown = 0;
    for (const row of rows) {
      const fits = (select, id) => select.value === "" || select.value === id;
      row.hidden = !(fits(byLabel, row.dataset.label) && fits(byClass, row.dataset.class));
      shown += !row.hidden;
    }
    count.textContent = `Showing ${shown} of ${rows.length}`;
  };

  for (const select of [byLabel, byClass]) select.addEventListener("change", filter);
  document.getElementById("controls").hidden = false;
  filter(); // browsers may restore the filters after a reload
})();
