// What htmx does not do: show how much of an upload has gone, and sort the table of an answer.
// Every page works without it.
document.addEventListener("htmx:xhr:progress", (event) => {
  const bar = event.target.querySelector("progress[data-upload]");
  if (bar && event.detail.lengthComputable) {
    bar.hidden = false;
    bar.max = event.detail.total;
    bar.value = event.detail.loaded;
  }
});

// Turns the head of each column into a button. The first press sorts upwards, the next downwards.
// Numbers sort by size, suppressed numbers last; labels sort as in the public description.
function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    const isNumber = head.classList.contains("number");
    const ranks = new Map();
    const keys = new Map();
    for (const row of body.rows) {
      const text = row.cells[column].textContent;
      if (!ranks.has(text)) ranks.set(text, ranks.size);
      keys.set(row, isNumber ? parseFloat(text) : ranks.get(text));
    }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = head.textContent;
    button.addEventListener("click", () => {
      const isUp = head.getAttribute("aria-sort") !== "ascending";
      const compare = (one, other) => {
        const [a, b] = [keys.get(one), keys.get(other)];
        return isNaN(a) || isNaN(b) ? isNaN(a) - isNaN(b) : isUp ? a - b : b - a;
      };
      body.append(...[...body.rows].sort(compare));
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
    });
    head.replaceChildren(button);
  });
}

// An answer is always a page of its own, and this script is deferred: its tables are parsed.
document.querySelectorAll("table[data-sortable]").forEach(makeSortable);
