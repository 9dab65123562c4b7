
// Adds a decision to each row, by mouse or keyboard, and their download as decisions.csv.
(() => {
  if (!list?.table.dataset.review) return;
  const { names, classes, rows } = JSON.parse(list.table.dataset.review);
  const { key, keep } = list.table.dataset;
  const find = (id) => document.getElementById(id);
  const [start, undo, download, dialog, menu] =
    ["start", "undo", "download", "choice", "choice-class"].map(find);
  const record = new Map(list.rows.map((row, i) => [row, rows[i]]));
  const toCheck = list.rows.filter((row) => row.dataset.check === "yes");
  const decisions = new Map(); // of a row: what was decided, and the class
  const history = []; // of rows, each with its decision before

  // ------------------------------------------------------------------------------- storage

  const store = () => {
    const stored = list.rows.map((row) => decisions.get(row) ?? null);
    try {
      localStorage.setItem(key, JSON.stringify(stored));
      find("unsaved").hidden = true;
    } catch {
      find("unsaved").hidden = false;
    }
  };

  const restore = () => {
    try {
      const stored = JSON.parse(localStorage.getItem(key) ?? "[]");
      stored.forEach((decided, i) => decided && decisions.set(list.rows[i], decided));
    } catch {
      find("unsaved").hidden = false;
    }
  };

  // ------------------------------------------------------------------------------ decisions

  const classOf = {
    keep: ({ kept }) => (kept === null ? "" : names[classes[kept]]),
    accept: ({ suggestion }) => names[suggestion],
    skip: () => "",
  };

  const show = (row) => {
    const decided = decisions.get(row);
    row.dataset.decided = decided ? "yes" : "no";
    for (const button of row.querySelectorAll(".decide button")) {
      const isChosen = button.value === decided?.decision;
      button.setAttribute("aria-pressed", isChosen);
      if (button.value !== "change") continue;
      button.textContent = isChosen ? decided.class : "Other…";
      button.title = isChosen ? decided.class : ""; // the button may be too small for it
    }
  };

  const showProgress = () => {
    const n = toCheck.filter((row) => decisions.has(row)).length;
    const others = decisions.size > n ? `, and ${decisions.size - n} more` : "";
    find("progress").textContent = `${n} of ${toCheck.length} decided${others}`;
    find("bar").value = n;
    download.disabled = decisions.size === 0;
    undo.disabled = history.length === 0;
  };

  const set = (row, decided) => {
    if (decided) decisions.set(row, decided);
    else decisions.delete(row);
    show(row);
    showProgress();
    store();
    list.filter();
  };

  const focus = (row) => (row && !row.hidden ? row : start).focus();

  const following = (row) => {
    const shown = list.shown();
    const later = shown.slice(shown.indexOf(row) + 1);
    return later.find((other) => !decisions.has(other)) ?? later[0] ?? row;
  };

  const decide = (row, action, chosen = classOf[action](record.get(row))) => {
    const before = decisions.get(row);
    // A row of the class that is never labeled is left without a label.
    const { label, kept } = record.get(row);
    const isLeft = names[label] === "" && kept !== null && chosen === names[classes[kept]];
    const decision = isLeft ? "keep" : action;
    const isSame = before?.decision === decision && before.class === chosen;
    const next = isSame ? row : following(row);
    history.push([row, before]);
    set(row, isSame ? null : { decision, class: chosen });
    focus(next);
  };

  const takeBack = () => {
    if (!history.length) return;
    const [row, before] = history.pop();
    set(row, before);
    focus(row);
  };

  // -------------------------------------------------------------------------- another class

  let asked = null; // the row that the dialog is about

  const ask = (row) => {
    asked = row;
    const { id, suggestion } = record.get(row);
    find("choice-title").textContent = `Choose a class for ${id}`;
    const now = names.indexOf(decisions.get(row)?.class ?? names[suggestion]);
    menu.selectedIndex = Math.max(classes.indexOf(now), 0);
    dialog.showModal();
    menu.focus();
  };

  const choose = () => {
    dialog.close();
    decide(asked, "change", names[classes[menu.selectedIndex]]);
  };

  menu.append(...classes.map((i) => new Option(names[i] || "(blank)")));
  menu.addEventListener("keydown", (event) => event.key === "Enter" && choose());
  menu.addEventListener("dblclick", choose);
  find("choice-done").addEventListener("click", choose);
  find("choice-cancel").addEventListener("click", () => dialog.close());

  // ---------------------------------------------------------------------- buttons and keys

  const BUTTONS = [["keep", keep], ["accept", "Accept"], ["change", "Other…"], ["skip", "Skip"]];

  const addButtons = (row) => {
    const cell = row.insertCell();
    cell.className = "decide";
    const group = document.createElement("div");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", `Decision on ${record.get(row).id}`);
    for (const [value, text] of BUTTONS) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", value, textContent: text, tabIndex: -1 });
      group.append(button);
    }
    cell.append(group);
    row.tabIndex = -1;
  };

  // Tab stops only at the active row and its buttons, not at those of all rows.
  let active = null;
  const activate = (row) => {
    for (const [other, index] of [[active, -1], [row, 0]]) {
      if (!other) continue;
      for (const element of [other, ...other.querySelectorAll("button")]) element.tabIndex = index;
    }
    active = row;
  };

  const act = (row, action) => (action === "change" ? ask(row) : decide(row, action));
  const move = (row, by) => {
    const shown = list.shown();
    focus(shown[shown.indexOf(row) + by] ?? row);
  };
  const KEYS = {
    k: (row) => act(row, "keep"),
    a: (row) => act(row, "accept"),
    c: (row) => act(row, "change"),
    s: (row) => act(row, "skip"),
    u: takeBack,
    arrowdown: (row) => move(row, 1),
    arrowup: (row) => move(row, -1),
  };

  list.body.addEventListener("focusin", (event) => activate(event.target.closest("tr")));
  list.body.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) act(button.closest("tr"), button.value);
  });
  list.body.addEventListener("keydown", (event) => {
    const action = KEYS[event.key.toLowerCase()];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action(event.target.closest("tr"));
  });
  undo.addEventListener("click", takeBack);
  start.addEventListener("click", () => {
    find("review").scrollIntoView(); // so that progress and list are visible together
    const shown = list.shown();
    // If the filters hide all rows, the next step is to change them.
    (shown.find((row) => !decisions.has(row)) ?? shown[0] ?? list.selects[0]).focus();
  });

  // ----------------------------------------------------------------------------- download

  const quoted = (text) => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  const csv = () => {
    const lines = [["id", "label", "suggestion", "doubt", "decision", "class", "hash"]];
    for (const row of list.rows.filter((row) => decisions.has(row))) {
      const { id, label, suggestion, doubt, hash } = record.get(row);
      const { decision, class: chosen } = decisions.get(row);
      lines.push([id, names[label], names[suggestion], `${doubt ?? ""}`, decision, chosen, hash]);
    }
    return lines.map((fields) => `${fields.map(quoted).join(",")}\n`).join("");
  };

  download.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
    link.download = "decisions.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });

  // -------------------------------------------------------------------------------- start

  const header = document.createElement("th");
  Object.assign(header, { scope: "col", className: "decide", textContent: "Decision" });
  list.table.tHead.rows[0].append(header);
  list.rows.forEach(addButtons);
  restore();
  list.rows.forEach(show);
  showProgress();
  if (list.rows.length) activate(list.rows[0]);
  find("review").hidden = false;
  list.filter();
})();
