// Feeds both the same profiles. A shape is compared as a sorted list of `path total`, or rows of a table as `name self total`.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const module = name => import("data:text/javascript;base64," + readFileSync(`${process.env.WEB}/page/${name}.js`).toString("base64"));
const { loadProfile } = await module("data");
const { baseShape, reversedShape, sandwichShapes, tableRows } = await module("shape");

const wick = (...options) => execFileSync("wick", [...options, "-q"], { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] });
const plain = name => name.replace(/_\[[kji]\]$/, "");
let compared = 0, differ = 0;
function same(what, ours, theirs) {
  compared++;
  const [a, b] = [ours, theirs].map(list => list.slice().sort().join("\n"));
  if (a === b) return;
  differ++;
  const missing = theirs.filter(line => !ours.includes(line)), more = ours.filter(line => !theirs.includes(line));
  console.log(`${what}: the page lacks ${JSON.stringify(missing.slice(0, 3))} and has ${JSON.stringify(more.slice(0, 3))}`);
}

// ---- what the page draws ----

function paths(model, shape) {
  const sums = new Map(), names = [];
  for (let n = 1; n < shape.count; n++) {
    names.length = shape.depth[n] - 1;
    names.push(model.places[shape.place[n]].name);
    if (shape.total[n]) sums.set(names.join(";"), (sums.get(names.join(";")) || 0) + shape.total[n]);
  }
  return [...sums].map(([path, total]) => `${path} ${total}`);
}
// Folded text calls stacks without frames something; the page leaves their room at the root empty.
const withRoot = (model, shape) => shape.self[0] ? [...paths(model, shape), `[no stack] ${shape.self[0]}`] : paths(model, shape);
const noRules = { focus: "", ignore: "", hide: "", root: "", frames: "" };
const choose = (rules = {}, collapse = false) => ({ event: "", thread: "", group: "", weight: "weight", shape: "both", hidden: [], focus: "", collapse,
  time: null, rules: { ...noRules, ...rules } });

// ---- what the commands write ----

function pathsOfFolded(text) {
  const sums = new Map();
  for (const line of text.split("\n").filter(line => line)) {
    const at = line.lastIndexOf(" "), names = line.slice(0, at).split(";").map(plain);
    for (let i = 1; i <= names.length; i++) {
      const path = names.slice(0, i).join(";");
      sums.set(path, (sums.get(path) || 0) + Number(line.slice(at + 1)));
    }
  }
  return [...sums].map(([path, total]) => `${path} ${total}`);
}
function pathsOfRows(rows) {
  const names = [];
  return rows.map(row => {
    names.length = row.depth - 1;
    names.push(plain(row.name));
    return `${names.join(";")} ${row.total}`;
  });
}
// Frames of a picture stand parents first; how high they stand says how deep they are.
function pathsOfPicture(svg) {
  const frames = [...svg.matchAll(/<title>([^<]*) \(([\d,]+) [^<]*<\/title><rect [^>]*\by="(\d+)"/g)].map(([, name, count, y]) => ({ name, count, y: +y }));
  const text = name => name.replace(/&(lt|gt|amp|quot|#39|apos);/g, (_, word) => ({ lt: "<", gt: ">", amp: "&", quot: '"' })[word] || "'");
  const names = [], height = 16, root = frames[0].y;
  return frames.slice(1).map(({ name, count, y }) => {
    names.length = Math.abs(y - root) / height - 1;
    names.push(plain(text(name)));
    return `${names.join(";")} ${count.replaceAll(",", "")}`;
  });
}

// ---- profiles ----

// The same numbers each time.
let state = 12345;
const random = below => (state = (state * 1103515245 + 12345) % 2147483648, Math.floor(state / 65536) % below);
const users = ["main", "run", "std::vector<int>::push_back", "operator<<", "parse", "rec", "rec", "a.b", "(anonymous namespace)::f", "größe", "x y"];
const kernel = ["sys_read_[k]", "vfs_read_[k]", "idle_[k]"];
function folded(stacks, depth) {
  const lines = new Map();
  for (let i = 0; i < stacks; i++) {
    const stack = Array.from({ length: 1 + random(depth) }, () => users[random(users.length)]);
    for (let k = random(3); k > 0; k--) stack.push(kernel[random(kernel.length)]);
    lines.set(stack.join(";"), 1 + random(50));
  }
  return [...lines].map(([stack, count]) => `${stack} ${count}\n`).join("");
}

const patterns = ["^main$", "rec|run", "vector<int>", "operator<<", "\\bf$", "^.{3}$", "ö", "^[a-r]", "[^a-z]", "(?:a|b)\\.b", "_read", "^x y$", "re(?!c)", "\\(anon", "MAIN", "z"];
const cases = [["plain", {}, []]];
patterns.forEach((pattern, i) => {
  const rule = ["focus", "ignore", "hide", "root"][i % 4];
  cases.push([`${rule} ${pattern}`, { [rule]: pattern }, [`--${rule}`, pattern]]);
});
const thorough = ["plain", "kernel", "user", "several", "hidden roots", "ignore rec|run", "hide vector<int>"]; // all shapes, also with recursion folded
for (const frames of ["kernel", "user"]) cases.push([frames, { frames }, [`--${frames}-only`]]);
cases.push(["several", { focus: "rec", ignore: "idle", hide: "^run$", root: "parse|main" }, ["--focus=rec", "--ignore=idle", "--hide=^run$", "--root=parse|main"]],
           ["hidden roots", { hide: "rec", root: "rec" }, ["--hide=rec", "--root=rec"]],
           ["kernel below", { root: "_read$", frames: "kernel" }, ["--root=_read$", "--kernel-only"]],
           ["user without", { hide: "main", frames: "user" }, ["--hide=main", "--user-only"]]);

// A command that finds nothing to show says so.
function attempt(...options) {
  try {
    return wick(...options);
  } catch {
    return "";
  }
}

for (const [profile, text] of [["small", folded(30, 5)], ["deep", folded(120, 12)]]) {
  writeFileSync("input", text);
  wick("flame", "--html", "input", "-o", "page.html");
  const model = await loadProfile(readFileSync("page.html", "utf8").match(/id="profile">([^<]*)</)[1]);
  for (const [name, rules, options] of cases)
    for (const collapse of thorough.includes(name) ? [false, true] : [false]) {
      const more = [...options, ...(collapse ? ["--fold-recursion"] : []), "input"], what = `${profile}, ${name}${collapse ? ", folded" : ""}`;
      const base = baseShape(model, choose(rules, collapse));
      same(`${what}: flame`, withRoot(model, base), pathsOfFolded(attempt("fold", ...more)));
      const {rows, total} = JSON.parse(attempt("report", "--json", ...more) || '{"rows":[],"total":0}');
      same(`${what}: total`, [`${base.total[0]}`], [`${total}`]);
      same(`${what}: table`, tableRows(model, base, choose(rules, collapse), "function").map(row => `${row.name} ${row.self} ${row.total}`),
           rows.map(row => `${plain(row.name)} ${row.self} ${row.total}`));
      if (!thorough.includes(name)) continue;
      if (!rules.root && base.total[0]) {
        same(`${what}: reversed`, paths(model, reversedShape(model, base, "both")),
             pathsOfPicture(attempt("flame", "--reverse", "--minwidth=0", ...more, "-o", "-")));
      }
      for (const middle of ["rec", "main"]) {
        const { callers, callees } = sandwichShapes(model, base, middle, "both");
        const tree = way => JSON.parse(attempt("report", `--${way}`, middle, "--threshold=0", "--json", ...more) || '{"rows":[]}').rows;
        const [up, down] = [tree("callers"), tree("callees")];
        same(`${what}: callers of ${middle}`, paths(model, callers), pathsOfRows(up));
        same(`${what}: callees of ${middle}`, paths(model, callees), pathsOfRows(down));
        const row = rows.find(other => other.name === middle);
        same(`${what}: self of ${middle}`, [callers, callees].map(shape => `${shape.own[1] || 0}`), [up, down].map(list => `${list.length ? list[0].self : 0}`));
        same(`${what}: self of ${middle} in the table`, [`${callees.own[1] || 0}`], [`${row ? row.self : 0}`]);
      }
    }
}
console.log(differ ? `${differ} of ${compared} differ` : "the same");
if (compared < 300) console.log(`only ${compared} were compared`);
