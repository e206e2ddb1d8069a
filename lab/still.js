// Node: draws a figure as it stands when its page opens, for readers without scripts and for print.
//
// usage: node lab/still.js NAME > still.svg
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");
const SCRIPTS = JSON.parse(fs.readFileSync(path.join(__dirname, "scripts.json"), "utf8"));

const loaded = new Set();

// Load the scripts of a figure in their order and once, as a page does; returns their namespace.
function load(name) {
  for (const script of SCRIPTS[name].filter((script) => !loaded.has(script))) {
    const file = path.join(__dirname, script + ".js");
    vm.runInThisContext(fs.readFileSync(file, "utf8"), file);
    loaded.add(script);
  }
  return globalThis.lab;
}

// As much of a canvas's context as plot.js uses, written down as SVG.
class Drawing {
  constructor() {
    Object.assign(this, { written: [], d: "", kept: [], clips: 0, turned: "", dash: [], globalAlpha: 1, lineWidth: 1 });
  }
  save() { this.kept.push([this.turned, this.clips, this.fillStyle]); this.clips = 0; }
  restore() {
    this.written.push("</g>".repeat(this.clips));
    [this.turned, this.clips, this.fillStyle] = this.kept.pop();
  }
  translate(x, y) { this.turned += `translate(${short(x)} ${short(y)}) `; }
  rotate(angle) { this.turned += `rotate(${short(angle * 180 / Math.PI)}) `; }
  setLineDash(dash) { this.dash = dash; }
  beginPath() { this.d = ""; }
  moveTo(x, y) { this.d += `M${short(x)} ${short(y)}`; }
  lineTo(x, y) { this.d += `L${short(x)} ${short(y)}`; }
  rect(x, y, w, h) { this.d += `M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}z`; }
  arc(x, y, r) { this.d += `M${short(x + r)} ${short(y)}a${r} ${r} 0 1 0 ${-2 * r} 0a${r} ${r} 0 1 0 ${2 * r} 0`; }
  clip() {
    const id = "clip" + this.written.length;
    this.written.push(`<clipPath id="${id}"><path d="${this.d}"/></clipPath><g clip-path="url(#${id})">`);
    this.clips++;
  }
  fill() { this.shape(`fill="${this.fillStyle}"`); }
  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash}"` : "";
    this.shape(`fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-linejoin="round"${dash}`);
  }
  shape(style) { this.written.push(`<path d="${this.d}" opacity="${this.globalAlpha}" ${style}/>`); }
  fillRect(x, y, w, h) {  // thousands of small ones in a row are one shape
    const d = `M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}z`, end = `" opacity="${this.globalAlpha}" fill="${this.fillStyle}"/>`;
    const last = this.written.length - 1;
    if (last >= 0 && this.written[last].endsWith(end)) { this.written[last] = this.written[last].slice(0, -end.length) + d + end; }
    else { this.written.push(`<path d="${d}${end}`); }
  }
  strokeRect(x, y, w, h) { this.beginPath(); this.rect(x, y, w, h); this.setLineDash([]); this.stroke(); }
  measureText(words) { return { width: 6.4 * words.length }; }
  fillText(words, x, y) {
    const anchor = { center: "middle", right: "end" }[this.textAlign] || "start", bold = this.font.startsWith("bold") ? ' font-weight="bold"' : "";
    const down = { middle: 4, top: 10 }[this.textBaseline] || (this.textBaseline === "bottom" ? -3 : 0);
    const safe = words.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    this.written.push(`<text x="${short(x)}" y="${short(y)}" dy="${down}" text-anchor="${anchor}" fill="${this.fillStyle}"${bold} transform="${this.turned}">${safe}</text>`);
  }
}

function short(number) { return String(Math.round(10 * number) / 10); }

// What is drawn of a figure, run for the values of its first preset: [{height, wide, draw(context, box)}].
function panelsOf(lab, name) {
  if (name === "sandbox") {
    const { STORIES, stateOf, begin, advance, VIEWS } = lab.sandbox, state = stateOf(STORIES[0]);
    const sides = ["left", "right"].map((side) => advance(begin(state, side), state.draws));
    return VIEWS.flatMap((view, i) => sides.map((side) => ({ height: i ? 140 : 300, draw: (context, box) => view(context, box, side, state.draws) })));
  }
  const figure = lab.figures[name], values = lab.presetValues(figure, figure.presets[0]), run = figure.run(values, 1);
  return figure.panels.map((panel) => ({ ...panel, draw: (context, box) => panel.draw(context, box, run, run.length, values) }));
}

// Draw a figure, two panels in a row; SVG.
function draw(name) {
  const drawing = new Drawing(), width = 720;
  let left = 0, top = 0, row = 0;
  for (const { height, wide, draw } of panelsOf(load(name), name)) {
    const own = wide ? width : width / 2 - 6;
    if (left + own > width) [top, left, row] = [top + row, 0, 0];
    draw(drawing, { left, top, width: own, height });
    left += own + 12;
    row = Math.max(row, height + 12);
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top + row}" viewBox="0 0 ${width} ${top + row}" `
    + `font-family="Helvetica, Arial, sans-serif" font-size="12"><rect width="100%" height="100%" fill="#ffffff"/>${drawing.written.join("\n")}</svg>\n`;
}

module.exports = { SCRIPTS, load, draw };
if (require.main === module) { process.stdout.write(draw(process.argv[2])); }
