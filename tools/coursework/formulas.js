// Set the formulas of pages as pictures: [[[tex, display], ...], ...] on standard input, the pages' [pictures, shared glyphs] on standard output.
// usage: node formulas.js FOLDER_OF_MATHJAX

const folder = process.argv[2];
const pages = JSON.parse(require("fs").readFileSync(0, "utf8"));

require(`${folder}/node-main.js`)
  .init({
    loader: { load: ["adaptors/liteDOM", "input/tex-base", "[tex]/ams", "output/svg"] },
    tex: { packages: ["base", "ams", "noundefined"], tags: "none" }, // no macros: a page's formulas change no other page's
    svg: { fontCache: "global" },
    startup: { typeset: false },
  })
  .then((MathJax) => {
    const glyphs = MathJax.startup.output.fontCache;
    const html = (node) => MathJax.startup.adaptor.outerHTML(node);
    const set = pages.map((formulas) => {
      glyphs.clearCache();
      MathJax.texReset();
      const pictures = formulas.map(([tex, display]) => MathJax.startup.adaptor.innerHTML(MathJax.tex2svg(tex, { display })));
      return [pictures, html(glyphs.getCache())];
    });
    process.stdout.write(JSON.stringify(set));
  })
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
