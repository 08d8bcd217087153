// usage: schema.cjs MODULES FILE…: says "valid" of each file that speedscope's schema takes.
const [, , modules, ...files] = process.argv;
const { readFileSync } = require("node:fs"), { join } = require("node:path");
const read = path => JSON.parse(readFileSync(path, "utf8"));
const Ajv = require(join(modules, "node_modules/ajv"));
const release = join(modules, "node_modules/speedscope/dist/release");
const validate = new Ajv({ schemaId: "auto", meta: true }).compile(read(join(release, "file-format-schema.json")));
for (const file of files) console.log(validate(read(file)) ? "valid" : JSON.stringify(validate.errors[0]));
