// The page of claims: show those of one chapter, of some kinds, or with a word. Without scripts all are shown.
(function () {
  const form = document.querySelector(".claims-filter");
  const select = form.querySelector("select"), status = form.querySelector("[role=status]");
  const boxes = Array.from(form.querySelectorAll("input[type=checkbox]")), word = form.querySelector("input[type=search]");
  const tables = Array.from(document.querySelectorAll("table.claims"));
  function show() {
    const kinds = boxes.filter((box) => box.checked).map((box) => box.value);
    const sought = word.value.trim().toLowerCase();
    let shown = 0, all = 0;
    tables.forEach((table) => {
      const wanted = !select.value || select.value === table.dataset.chapter;
      let rows = 0;
      table.querySelectorAll("tbody tr").forEach((row) => {
        row.hidden = !(wanted && kinds.includes(row.dataset.kind) && row.textContent.toLowerCase().includes(sought));
        rows += !row.hidden;
        all += 1;
      });
      table.closest("section").hidden = rows === 0;
      shown += rows;
    });
    status.textContent = shown + " of " + all + " claims";
  }
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show();
})();
