"use strict";

// Adds sorting and filters to the list of rows. The page is complete without it.
const list = (() => {
  const table = document.getElementById("rows");
  if (!table) return null;
  const body = table.tBodies[0];
  const rows = [...body.rows]; // in the order of the page, whatever the list is sorted by
  const headers = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator(undefined, { numeric: true });

  const value = (row, column) => {
    const { v, text } = row.cells[column].dataset;
    return v === undefined ? (text ?? row.cells[column].textContent) : Number.parseFloat(v);
  };

  // Text is compared digit by digit, which is wrong for -2 and 0.25: if all cells of a column are
  // numbers, it is sorted by their values; an empty cell is missing.
  const asNumber = (v) => (typeof v === "string" && !v.trim() ? Number.NaN : Number(v));
  const isNumber = (v) => typeof v === "number" || !v.trim() || Number.isFinite(Number(v));
  const values = (column) => {
    const found = rows.map((row) => value(row, column));
    return found.every(isNumber) ? found.map(asNumber) : found;
  };

  const compare = (a, b) => (typeof a === "string" ? collator.compare(a, b) : a - b);
  const missingLast = (a, b) => Number.isNaN(a) - Number.isNaN(b);

  const sort = (header) => {
    const column = headers.indexOf(header);
    const direction = header.ariaSort === "ascending" ? "descending" : "ascending";
    const sign = direction === "ascending" ? 1 : -1;
    const keyed = values(column).map((key, i) => [key, rows[i]]);
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

  const controls = document.getElementById("controls");
  const selects = [...controls.querySelectorAll("select")];
  const count = document.getElementById("count");

  const shown = () => [...body.rows].filter((row) => !row.hidden);

  // Each menu shows the rows whose data attribute of the same key has the chosen value.
  const filter = () => {
    const fits = (row) => selects.every((s) => !s.value || row.dataset[s.dataset.key] === s.value);
    for (const row of rows) row.hidden = !fits(row);
    const n = shown().length;
    count.textContent = `Showing ${n} of ${rows.length}${n ? "" : "; the filters hide all rows"}`;
  };

  for (const select of selects) select.addEventListener("change", filter);
  controls.hidden = false;
  filter(); // browsers may restore the filters after a reload
  return { table, body, rows, selects, filter, shown };
})();
