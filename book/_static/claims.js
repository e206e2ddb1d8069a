// The page of claims: show those of one chapter, or of some kinds. Without scripts all are shown.
(function () {
  const form = document.querySelector(".claims-filter");
  const select = form.querySelector("select"), status = form.querySelector("[role=status]");
  const boxes = Array.from(form.querySelectorAll("input")), tables = Array.from(document.querySelectorAll("table.claims"));
  function show() {
    const kinds = boxes.filter((box) => box.checked).map((box) => box.value);
    let shown = 0, all = 0;
    tables.forEach((table) => {
      const wanted = !select.value || select.value === table.dataset.chapter;
      let rows = 0;
      table.querySelectorAll("tbody tr").forEach((row) => {
        row.hidden = !(wanted && kinds.includes(row.dataset.kind));
        rows += !row.hidden;
        all += 1;
      });
      table.closest("section").hidden = rows === 0;
      shown += rows;
    });
    status.textContent = shown + " of " + all + " claims";
  }
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show();
})();
