// Run files as a page does, as classic scripts one after the other in one namespace, then the body of a function; what it returns is printed.
"use strict";

const fs = require("fs"), vm = require("vm");

const { files, script, given } = JSON.parse(fs.readFileSync(0, "utf8"));
for (const filename of files) vm.runInThisContext(fs.readFileSync(filename, "utf8"), { filename });

const result = vm.runInThisContext(`(function (given) {${script}\n})`)(given);
const encode = (array) => ({ float64: Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64") });
process.stdout.write(JSON.stringify(result, (name, value) => (value instanceof Float64Array ? encode(value) : value)));
