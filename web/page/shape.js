/*
 * From the profile to the tree that a view draws. A shape has, for each frame and parents first: parent, place,
 * depth, end (of its subtree), left and size (along the width), self, total and, for a diff, before.
 *
 * The plain flame is the profile's own tree with other weights. All others are tries that are grown from lists of the
 * profile's nodes, widest first, and only while a frame is wide enough to be visible: growing costs what is drawn.
 */
const tooNarrow = 1 / 20000;

// A thread that was read from text may have only a name, or a tid without a pid.
const threadNumber = s => s.tid > 0 ? ` ${s.pid < 0 ? "?" : s.pid}/${s.tid}` : "";
export const threadKey = s => s.tid || s.comm ? (s.comm || "?") + threadNumber(s) : "";
const groupKeys = {command: s => s.group || s.comm || "?", thread: s => threadKey(s) || "?"};

export const isOfTime = (s, choice) => !s.times || s.times.includes(choice.times);

export function seriesWanted(model, choice) {
  return model.series.map(s => isOfTime(s, choice) && (!choice.event || s.event === choice.event || s.before) &&
    (!choice.thread || choice.thread === threadKey(s)));
}

// By node, whether a stack that ends there contains the focused function or pattern; null if there is no focus.
export function passing(model, choice) {
  const pattern = choice.rules.focus && patternOf(choice.rules.focus);
  if (!choice.focus && !pattern) return null;
  const fits = model.functions.map(name => (name === choice.focus ? 1 : 0) | (pattern && pattern.test(name) ? 2 : 0));
  const bits = new Uint8Array(model.count), wanted = (choice.focus ? 1 : 0) | (pattern ? 2 : 0);
  for (let n = 1; n < model.count; n++) bits[n] = bits[model.parent[n]] | fits[model.functionOf[model.place[n]]];
  return bits.map(bit => bit === wanted ? 1 : 0);
}

// Call add(node, series, amount) for everything that is chosen.
export function eachCount(model, choice, add) {
  const wanted = seriesWanted(model, choice), bySamples = choice.weight === "samples";
  if (choice.time) {
    const s = model.samples, [from, to] = choice.time;
    for (let i = 0; i < s.count; i++)
      if (wanted[s.series[i]] && s.time[i] >= from && s.time[i] <= to) add(s.node[i], s.series[i], bySamples ? 1 : s.weight[i]);
  } else {
    const c = model.cells, amounts = bySamples ? c.samples : c.weight;
    for (let i = 0; i < c.count; i++) if (wanted[c.series[i]]) add(c.node[i], c.series[i], amounts[i]);
  }
}

// A diff has the earlier weight beside each weight; wall time has the part that was spent waiting.
const hasOtherSide = (model, choice) => model.isDiff || choice.times === "wall";
const waitsApart = shape => Object.assign(shape, {waits: shape.before, selfWaits: shape.selfBefore, before: null, selfBefore: null});
const waitsBeside = shape => shape.waits ? {...shape, before: shape.waits, selfBefore: shape.selfWaits} : shape;

// The profile's own tree, with each node's self weight on both sides of a diff.
function weighed(model, choice) {
  const self = new Float64Array(model.count), selfBefore = hasOtherSide(model, choice) ? new Float64Array(model.count) : null;
  const {count, parent, place, depth, end} = model, shape = {count, parent, place, depth, end, self, selfBefore};
  eachCount(model, choice, (node, series, amount) => addCount(model, shape, node, series, amount));
  return shape;
}

function addCount(model, shape, node, series, amount) {
  const one = model.series[series];
  if (!one.before) shape.self[node] += amount;
  if (one.before || (shape.selfBefore && !model.isDiff && one.waits)) shape.selfBefore[node] += amount;
}

/*
 * The same below a frame for each command or thread, sorted by name. Each group costs its own stacks, not the whole
 * tree: a stack adds the frames that no earlier one of its group had. Stacks come in the tree's order, and so do
 * these frames.
 */
function grouped(model, choice) {
  const hasOther = hasOtherSide(model, choice), keys = model.series.map(groupKeys[choice.group]), chosen = countsBy(model, choice, keys);
  const at = new Int32Array(model.count), path = new Int32Array(model.count); // at: a node's frame in the current group, or in an earlier one
  const framesOf = (node, first) => { // number of frames up from a node that are new to the group whose frames begin at `first`
    let length = 0;
    for (; at[node] < first; node = model.parent[node]) path[length++] = node;
    return length;
  };
  let count = 1;
  for (const group of chosen) {
    const first = at[0] = count++;
    for (const node of group.node) for (let length = framesOf(node, first); length;) at[path[--length]] = count++;
  }
  const shape = emptyShape(count, hasOther);
  shape.parent[0] = shape.place[0] = -1;
  at.fill(0);
  count = 1;
  for (const {name, node, series, amount} of chosen) {
    const first = at[0] = count++;
    shape.place[first] = model.groupPlace(name);
    shape.depth[first] = 1;
    for (let i = 0; i < node.length; i++) {
      for (let length = framesOf(node[i], first); length;) {
        const n = path[--length], id = at[n] = count++;
        shape.parent[id] = at[model.parent[n]];
        shape.place[id] = model.place[n];
        shape.depth[id] = model.depth[n] + 1;
      }
      addCount(model, shape, at[node[i]], series[i], amount[i]);
    }
  }
  for (let n = count - 1; n >= 0; n--) {
    if (!shape.end[n]) shape.end[n] = n + 1;
    if (n && !shape.end[shape.parent[n]]) shape.end[shape.parent[n]] = shape.end[n]; // the last child's
  }
  return shape;
}

// Everything that is chosen, by the key of its series, in the order of the tree's nodes.
function countsBy(model, choice, keys) {
  const names = [...new Set(keys)].sort(), number = new Map(names.map((name, i) => [name, i])), groups = names.map(name => ({name, node: [], series: [], amount: []}));
  const groupOf = keys.map(key => groups[number.get(key)]);
  eachCount(model, choice, (node, series, amount) => {
    const group = groupOf[series];
    group.node.push(node);
    group.series.push(series);
    group.amount.push(amount);
  });
  return groups.filter(group => group.node.length).map(group => choice.time ? inOrder(group) : group);
}

// Cells are sorted by node, samples by time.
function inOrder({name, node, series, amount}) {
  const order = Uint32Array.from(node, (n, i) => i).sort((a, b) => node[a] - node[b]), by = list => Array.from(order, i => list[i]);
  return {name, node: by(node), series: by(series), amount: by(amount)};
}

function totals(parent, self) {
  const total = Float64Array.from(self);
  for (let n = total.length - 1; n > 0; n--) total[parent[n]] += total[n];
  return total;
}

// The value that a frame's width shows: the larger side, or one of them.
function widths(self, before, shape) {
  if (!before || shape === "after") return self;
  if (shape === "before") return before;
  return self.map((value, n) => Math.max(value, before[n]));
}

function finish(shape, which) {
  const own = widths(shape.self, shape.selfBefore, which);
  const size = totals(shape.parent, own), left = new Float64Array(shape.count), next = new Float64Array(shape.count);
  next[0] = own[0];
  for (let n = 1; n < shape.count; n++) {
    left[n] = next[shape.parent[n]];
    next[shape.parent[n]] += size[n];
    next[n] = left[n] + own[n];
  }
  shape.left = left;
  shape.size = size;
  shape.total = totals(shape.parent, shape.self);
  shape.own = shape.self; // what is shown for a frame
  shape.before = shape.selfBefore && totals(shape.parent, shape.selfBefore);
  return shape;
}

// ---- which stacks, and which of their frames ----

// As in wick's commands (src/stacks/pattern.c): `.` is any character, and characters are whole code points. Null if
// it is not a valid pattern.
export function patternOf(text) {
  try {
    return new RegExp(text, "su");
  } catch {
    return null;
  }
}

const inFocus = 1, inPattern = 2, isIgnored = 4, isRoot = 8, isHidden = 16, ofStack = inFocus | inPattern | isIgnored | isRoot;
export const isKernel = 1, isWaker = 32; // bits of a place's kinds, src/tree/tree.h

// What each function's name means for its frames and for stacks through it, computed once per function.
function nameBits(model, choice) {
  const hidden = new Set(choice.hidden), patterns = [];
  for (const [rule, bit] of [["focus", inPattern], ["ignore", isIgnored], ["hide", isHidden], ["root", isRoot]]) {
    const pattern = choice.rules[rule] && patternOf(choice.rules[rule]);
    if (pattern) patterns.push([pattern, bit]);
  }
  const bits = Uint8Array.from(model.functions, name => patterns.reduce((sum, [pattern, bit]) => pattern.test(name) ? sum | bit : sum,
    (name === choice.focus ? inFocus : 0) | (hidden.has(name) ? isHidden : 0)));
  return {bits, wanted: patterns.reduce((sum, [, bit]) => sum | bit, choice.focus ? inFocus : 0) & (inFocus | inPattern | isRoot)};
}

/*
 * Apply the rules to a tree, like src/stacks/transform.c: a focus keeps stacks through it, a root drops its callers,
 * hidden frames leave their callees to their callers, folded recursion is one frame. Parents first, into a new trie.
 */
function rearranged(model, tree, choice) {
  const {bits, wanted} = nameBits(model, choice), {functionOf, places} = model, real = model.about.places.length;
  const {count, parent: up, place: placeOf} = tree, only = choice.rules.frames;
  const holds = new Uint8Array(count), drawn = new Uint8Array(count), at = new Int32Array(count);
  for (let n = 1; n < count; n++) holds[n] = (holds[up[n]] & ofStack) | bits[functionOf[placeOf[n]]];
  const isKept = n => (holds[n] & wanted) === wanted && !(holds[n] & isIgnored);
  for (let n = count - 1; n > 0; n--) {
    if (isKept(n) && (tree.self[n] || (tree.selfBefore && tree.selfBefore[n]))) drawn[n] = 1;
    drawn[up[n]] |= drawn[n];
  }
  const keys = new Map(), parent = [-1], place = [-1], self = [0], before = [0], frames = [0];
  for (let n = 0; n < count; n++) {
    const id = functionOf[placeOf[n]], isGroup = placeOf[n] >= real, own = n && bits[id];
    const over = n && !(own & isRoot) ? at[up[n]] : 0;
    const isOther = only && !isGroup && n && (only === "kernel") !== !!(places[placeOf[n]].kinds & isKernel);
    const isSame = choice.collapse && frames[over] && functionOf[place[over]] === id;
    at[n] = over;
    if (drawn[n] && n && (holds[n] & isRoot || !(wanted & isRoot)) && !(own & isHidden) && !isOther && !isSame) {
      const key = over * model.functions.length + id;
      if (!keys.has(key)) {
        keys.set(key, parent.push(over) - 1);
        place.push(placeOf[n]);
        self.push(0);
        before.push(0);
        frames.push(frames[over] + (isGroup ? 0 : 1));
      }
      at[n] = keys.get(key);
    }
    if (!isKept(n) || (only && !frames[at[n]])) continue;
    self[at[n]] += tree.self[n];
    if (tree.selfBefore) before[at[n]] += tree.selfBefore[n];
  }
  return preordered(parent, place, self, tree.selfBefore && before);
}

// Reorder a trie in which parents are only somewhere before their children to depth-first order; siblings keep their
// order.
function preordered(parent, place, self, before) {
  const count = parent.length, first = new Int32Array(count), next = new Int32Array(count);
  for (let n = count - 1; n > 0; n--) {
    next[n] = first[parent[n]];
    first[parent[n]] = n;
  }
  const shape = emptyShape(count, before);
  const open = [];
  let number = 0;
  for (let n = 0; ;) {
    shape.parent[number] = open.length ? open[open.length - 1] : -1;
    shape.place[number] = place[n];
    shape.depth[number] = open.length;
    shape.self[number] = self[n];
    if (before) shape.selfBefore[number] = before[n];
    open.push(number++);
    if (first[n]) {
      n = first[n];
      continue;
    }
    while (n && !next[n]) shape.end[open.pop()] = number, n = parent[n];
    shape.end[open.pop()] = number;
    if (!n) break;
    n = next[n];
  }
  return shape;
}

function emptyShape(count, before) {
  return {count, parent: new Int32Array(count), place: new Int32Array(count), depth: new Int32Array(count), end: new Int32Array(count),
          self: new Float64Array(count), selfBefore: before ? new Float64Array(count) : null};
}

const isPlain = choice => !choice.hidden.length && !choice.focus && !choice.collapse && Object.values(choice.rules).every(rule => !rule);

// The base of every other view.
export function baseShape(model, choice) {
  const tree = choice.group ? grouped(model, choice) : weighed(model, choice);
  const shape = isPlain(choice) ? tree : rearranged(model, tree, choice);
  return hasOtherSide(model, choice) && !model.isDiff ? waitsApart(finish(shape, "after")) : finish(shape, choice.shape);
}

// ---- tries grown from lists of nodes ----

/*
 * Each frame of a grown trie stands for nodes of the base: `step` passes on, for each of them, what comes next (its
 * caller, or its callees) with its weight. Lists are split by place, the widest first, ties by name.
 */
function grow(model, base, roots, step) {
  const parent = [-1], place = [-1], self = [0], before = base.before ? [0] : null;
  const whole = roots.reduce((sum, entry) => sum + Math.max(entry.weight, entry.before), 0);
  const waiting = [[0, roots, true]];
  while (waiting.length) {
    const [at, entries, isRoot] = waiting.pop();
    const groups = new Map();
    let rest = 0, restBefore = 0;
    for (const entry of entries) {
      const weight = entry.weight, weightBefore = entry.before;
      let went = 0, wentBefore = 0;
      const take = next => {
        went += next.weight;
        wentBefore += next.before;
        const key = model.functionOf[base.place[next.node]];
        const group = groups.get(key);
        if (group) group.list.push(next), group.weight += next.weight, group.before += next.before;
        else groups.set(key, {key, list: [next], weight: next.weight, before: next.before});
      };
      if (isRoot) take(entry);
      else step(entry, take);
      if (!isRoot) rest += weight - went, restBefore += weightBefore - wentBefore;
    }
    const order = [...groups.values()].sort((a, b) => Math.max(b.weight, b.before) - Math.max(a.weight, a.before) ||
      (model.functions[a.key] < model.functions[b.key] ? -1 : 1));
    for (const group of order) {
      const wide = Math.max(group.weight, group.before) >= whole * tooNarrow;
      if (!wide && !isRoot) {
        rest += group.weight, restBefore += group.before;
        continue;
      }
      const id = parent.push(at) - 1;
      place.push(base.place[group.list[0].node]);
      self.push(wide ? 0 : group.weight);
      if (before) before.push(wide ? 0 : group.before);
      if (wide) waiting.push([id, group.list, false]);
    }
    self[at] += rest;
    if (before) before[at] += restBefore;
  }
  return preordered(parent, place, self, before);
}

// Up: each entry is replaced by its caller in place, so that a million of them take no memory per step.
const callers = base => (entry, take) => {
  entry.node = base.parent[entry.node];
  if (entry.node > 0) take(entry);
};
const callees = base => (entry, take) => {
  for (let k = entry.node + 1; k < base.end[entry.node]; k = base.end[k])
    if (base.total[k] || (base.before && base.before[k]))
      take({node: k, weight: base.total[k], before: base.before ? base.before[k] : 0});
};

// The same for a shape whose waits are counted separately. `rootsOf` returns the roots for a base; the shape
// remembers how it was grown.
function grown(model, base, rootsOf, step, which) {
  const sides = waitsBeside(base), shape = grow(model, sides, rootsOf(sides), step(sides));
  return Object.assign(base.waits ? waitsApart(finish(shape, "after")) : finish(shape, which), {rootsOf, step});
}

// A frame's weight if the base is counted as in `other`: grow its trie again, only along the frame's path.
export function weightIn(model, other, shape, node) {
  if (!shape.rootsOf) return other.count === shape.count ? other.total[node] : 0;
  const path = [], functionOf = entry => model.functionOf[other.place[entry.node]], step = shape.step(other);
  for (let n = node; n > 0; n = shape.parent[n]) path.push(model.functionOf[shape.place[n]]);
  let entries = shape.rootsOf(other);
  for (let first = true; path.length; first = false) {
    const key = path.pop(), reached = [], take = entry => functionOf(entry) === key && reached.push(entry);
    for (const entry of entries) first ? take(entry) : step(entry, take);
    entries = reached;
  }
  return entries.reduce((sum, entry) => sum + entry.weight, 0);
}

function leaves(base) {
  const found = [];
  for (let n = 1; n < base.count; n++)
    if (base.self[n] || (base.selfBefore && base.selfBefore[n]))
      found.push({node: n, weight: base.self[n], before: base.selfBefore ? base.selfBefore[n] : 0});
  return found;
}

export const reversedShape = (model, base, which) => grown(model, base, leaves, callers, which);

// The outermost frames of a function: recursive calls are already inside them.
export function occurrences(model, base, name) {
  const found = [];
  for (let n = 1; n < base.count;) {
    if (model.places[base.place[n]].name === name) {
      found.push({node: n, weight: base.total[n], before: base.before ? base.before[n] : 0});
      n = base.end[n];
    } else n++;
  }
  return found;
}

// The self value of the function in the middle includes all its frames, as in the table, not only the outermost ones.
export function sandwichShapes(model, base, name, which) {
  const find = sides => occurrences(model, sides, name);
  const shapes = {callers: grown(model, base, find, callers, which), callees: grown(model, base, find, callees, which)};
  let self = 0;
  for (let n = 1; n < base.count; n++) if (model.places[base.place[n]].name === name) self += base.self[n];
  for (const shape of Object.values(shapes)) {
    shape.own = shape.self.slice();
    if (shape.count > 1) shape.own[1] = self;
  }
  return shapes;
}

// ---- rows of a table ----

export function tableRows(model, base, choice, by) {
  const rows = new Map();
  const row = key => {
    let r = rows.get(key);
    if (!r) rows.set(key, r = {name: key, self: 0, selfBefore: 0, total: 0, before: 0, last: -1});
    return r;
  };
  if (by === "thread") {
    const wanted = seriesWanted(model, choice), c = model.cells;
    for (let i = 0; i < c.count; i++) {
      if (!wanted[c.series[i]]) continue;
      const s = model.series[c.series[i]], r = row(threadKey(s) || "(no thread)");
      const amount = (choice.weight === "samples" ? c.samples : c.weight)[i];
      if (s.before) r.selfBefore += amount, r.before += amount;
      else r.self += amount, r.total += amount;
    }
    return [...rows.values()];
  }
  // By number, not by name: a place is looked up once, however many frames it has.
  const keyOf = {function: p => p.name, object: p => p.object || "(unknown)", category: p => p.category}[by];
  const real = model.about.places.length, byPlace = new Array(real);
  for (let i = 0; i < real; i++) byPlace[i] = row(keyOf(model.places[i]));
  for (let n = 1; n < base.count; n++) {
    if (base.place[n] >= real || (!base.total[n] && !(base.before && base.before[n]))) continue;
    const r = byPlace[base.place[n]];
    r.self += base.self[n];
    if (base.before) r.selfBefore += base.selfBefore[n];
    if (n >= r.last) {
      // Nothing is counted again below a frame of the same key.
      r.total += base.total[n];
      if (base.before) r.before += base.before[n];
      r.last = base.end[n];
    }
  }
  return [...rows.values()].filter(r => r.total || r.before);
}
