// Run files as a page does, as classic scripts one after the other in one namespace, then the body of a function; what it returns is printed.
"use strict";

const crypto = require("crypto"), fs = require("fs"), vm = require("vm");

const { files, script, given } = JSON.parse(fs.readFileSync(0, "utf8"));
for (const filename of files) vm.runInThisContext(fs.readFileSync(filename, "utf8"), { filename });

// All numbers of a state in the order of their names, for one word that stands for their bits; what is no number is one of its own.
function numbers(value, found) {
  if (typeof value === "number") found.push(value === value ? value : 1.25e300);
  else if (typeof value === "boolean") found.push(value ? 1 : 0);
  else if (typeof value === "string") for (const letter of value) found.push(letter.codePointAt(0));
  else if (value === null) found.push(-1.25e300);
  else if (Array.isArray(value) || value instanceof Float64Array) for (const entry of value) numbers(entry, found);
  else for (const name of Object.keys(value).sort()) numbers(value[name], found);
  return found;
}
const digest = (value) => crypto.createHash("sha256").update(Float64Array.from(numbers(value, []))).digest("hex").slice(0, 16);

const result = vm.runInThisContext(`(function (given, digest) {${script}\n})`)(given, digest);
const encode = (array) => ({ float64: Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64") });
process.stdout.write(JSON.stringify(result, (name, value) => (value instanceof Float64Array ? encode(value) : value)));
