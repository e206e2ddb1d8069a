// What the style sheet cannot do alone: see which formulas in a line are wider than it,
// let the keyboard reach what scrolls and the eye see that it does, name the folds of the contents, and open what a link leads into.
(function () {
  const DPI = 110;  // figure.dpi of booklib/book.mplstyle
  // Whether there is more to the right of what is seen: its edge fades then.
  const fade = (box) => box.classList.toggle("more", box.scrollWidth - box.clientWidth - box.scrollLeft > 1);
  function mark() {
    document.querySelectorAll(".scrolls").forEach((box) => box.classList.remove("scrolls", "more"));
    document.querySelectorAll("span.math").forEach((span) => {
      span.classList.remove("wide");
      const formula = span.querySelector("mjx-container"), block = span.closest("p, li, dd, td, th, figcaption, div");
      if (formula && block && formula.getBoundingClientRect().width > block.clientWidth) { span.classList.add("wide"); }
    });
    document.querySelectorAll("pre, div.math, div.math mjx-container, span.math.wide, .pst-scrollable-table-container, .text_html, .figure-box").forEach((box) => {
      const scrolls = box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(box).overflowX);
      box.classList.toggle("scrolls", scrolls);
      box.onscroll = scrolls ? () => fade(box) : null;
      if (scrolls) {
        fade(box);
        box.tabIndex = 0;
        if (!box.hasAttribute("role")) { box.setAttribute("role", "region"); box.setAttribute("aria-label", "scrolls sideways"); }
      } else if (box.getAttribute("aria-label") === "scrolls sideways") {
        box.removeAttribute("tabindex"); box.removeAttribute("role"); box.removeAttribute("aria-label");
      }
    });
  }
  function begin() {
    const ready = window.MathJax && MathJax.startup && MathJax.startup.promise;
    (ready || Promise.resolve()).then(mark);
    window.addEventListener("resize", mark);
  }
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".cell_output figure > img").forEach((image) => {
      const box = document.createElement("div");
      box.className = "figure-box";
      image.replaceWith(box);
      box.append(image);
      // So wide are letters of nine points seven and a half pixels high: figures are drawn with DPI dots an inch.
      const measure = () => box.style.setProperty("--readable", (60 / DPI) * image.naturalWidth + "px");
      image.complete ? measure() : image.addEventListener("load", measure);
    });
    document.querySelectorAll(".bd-links summary").forEach((summary) => {
      if (summary.querySelector(".caption")) { return; } // a part: it has its name
      const link = summary.closest("li").querySelector("a");
      summary.setAttribute("aria-label", "pages under " + link.textContent.trim());
    });
  });
  // A link to a claim opens the block in which it is, in browsers that do not do so themselves.
  function open() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1))), block = target && target.closest("details");
    if (block && !block.open) { block.open = true; target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", open);
  window.addEventListener("load", () => { begin(); open(); });
})();
