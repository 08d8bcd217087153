/*
 * The page: which view shows which part of the profile, and the reader's actions. Every choice is in `choice`, and in
 * the URL after the #; every change goes through change(), which redraws what it affects.
 */
import { loadProfile } from "./data.js";
import { baseShape, isOfTime, patternOf, reversedShape, sandwichShapes, tableRows, threadKey, weightIn } from "./shape.js";
import { Graph, changeWords } from "./graph.js";
import { Table, blockedRows } from "./table.js";
import { CallTree } from "./calltree.js";
import { Source, jumpArrows } from "./source.js";
import { Timeline } from "./timeline.js";
import { HeatMap } from "./heat.js";
import { Lifetimes } from "./lifetimes.js";
import { ThreadChooser } from "./threads.js";
import { fitName, foldedName, searchPattern } from "../names.js";
import { svgOf, foldedOf, download } from "./save.js";

const element = id => document.getElementById(id);
const views = {flame: "Flame", icicle: "Icicle", reversed: "Reversed", sandwich: "Sandwich", table: "Table", calltree: "Call Tree", source: "Source", lifetimes: "Lifetimes", timeline: "Timeline", heat: "Heat Map"};
// Views other than flame graphs have a panel of their own.
const others = ["table", "calltree", "source", "lifetimes", "timeline", "heat"];
// Let the browser draw the page before the script keeps it busy; a page in the background is not drawn at all.
await new Promise(done => document.hidden ? done() : requestAnimationFrame(() => setTimeout(done)));
const model = await loadProfile(element("profile").textContent);
element("unpacking").remove();
model.isMemory = ["allocated", "live", "freed"].some(value => model.series.some(one => one.event === value && one.unit === "bytes"));
const choice = {view: "flame", times: model.about.shown || "", event: "", thread: "", group: "", weight: "weight", shape: "both", hidden: [], focus: "", collapse: false,
                rules: {focus: "", ignore: "", hide: "", root: "", frames: ""},
                middle: "", by: "function", turn: "down", time: null, search: "", matchCase: false};
const defaults = JSON.parse(JSON.stringify(choice));
let base = null;
const trail = [];

const count = value => value.toLocaleString("en");

// ---- what there is to choose from ----

const distinct = list => [...new Set(list)];
let events = [];
const threads = distinct(model.series.map(threadKey).filter(key => key));
if (model.series.some(s => s.comm)) choice.group = defaults.group = "command";
const unit = () => choice.weight === "samples" ? "samples" :
  (model.series.find(s => !s.before && isOfTime(s, choice) && (!choice.event || s.event === choice.event)) || {unit: "samples"}).unit || "samples";

const valueTitles = {live: "Bytes Never Freed", allocated: "Bytes Allocated", freed: "Bytes Freed"};
const title = () => (model.about.first && valueTitles[choice.event]) || (model.times.find(([key]) => key === choice.times) || ["", model.about.title])[1];

function fill(select, values, texts) {
  select.replaceChildren(...values.map((value, i) => new Option(texts[i], value)));
}
// The events of the chosen time. Waits and the running time between them add up to one total.
function offerEvents() {
  events = distinct(model.series.filter(s => !s.before && isOfTime(s, choice)).map(s => s.event));
  const together = model.times.length ? choice.times !== "on-cpu" : model.about.together, first = events.length > 1 && !together ? events.find(event => event === model.about.first) || events[0] : "";
  if (!events.includes(choice.event)) choice.event = first;
  defaults.event = first;
  fill(element("event"), events.length > 1 ? [...events, ""] : events, events.length > 1 ? [...events, "all of them"] : events);
  element("event-box").hidden = events.length < 2;
}
offerEvents();
fill(element("times"), model.times.map(([key]) => key), model.times.map(([key]) => ({"on-cpu": "on-CPU", "off-cpu": "off-CPU"})[key] || key));
element("times-box").hidden = !model.times.length;
element("thread-box").hidden = threads.length < 2;
element("group-box").hidden = !threads.length;
// If every stack counts once and there are no times, as in an exact trace, the number of samples means nothing.
element("weight-box").hidden = (!model.samples.count && model.cells.samples.every(n => n <= 1)) || model.cells.weight.every((weight, i) => weight === model.cells.samples[i]);
element("shape-box").hidden = !model.isDiff;
element("subtitle").textContent = element("subtitle").title = model.about.subtitle;
element("options").addEventListener("click", event => event.target.setAttribute("aria-expanded", event.target.getAttribute("aria-expanded") !== "true"));
if (model.about.notes.length) {
  const notes = element("notes");
  notes.hidden = false;
  const list = model.about.notes, one = list.length === 1; // which needs no list
  notes.open = model.about.wrong > 0 && !one; // else it is one line
  notes.classList.toggle("wrong", model.about.wrong > 0);
  notes.classList.toggle("one", one);
  notes.querySelector("summary").textContent = one ? list[0] : `${list.length} things to know about this profile`;
  notes.querySelector("ul").replaceChildren(...list.slice(one ? 1 : 0).map(note => {
    const item = document.createElement("li");
    item.textContent = note;
    return item;
  }));
}

// ---- views ----

const graph = new Graph(element("canvas"), model, {tell, zoomed, menu: openMenu});
const chart = new Graph(element("chart"), model, {tell: tellTime, zoomed: () => {}, menu: openMenu});
const table = new Table(element("table"), {
  choose: (name, by) => by === "thread" ? change({thread: name, view: "flame"}) : change({middle: name, view: "sandwich"}),
  amount: value => amount(value),
  isFound: (name, by) => by === "function" && !!found && found.test(name),
});
const calltree = new CallTree(element("tree-rows"), element("tree-head"), {
  tell: hit => tell(hit), amount: value => amount(value), menu: openMenu,
  name: (shape, node) => model.places[shape.place[node]].name,
  short: name => foldedName(name).slice(0, 2000),
  isFound: (shape, node) => !!verdicts && !!verdicts[model.functionOf[shape.place[node]]],
});
const source = new Source(element("source"), model, {amount: value => amount(value)});
const lifetimes = new Lifetimes(element("lifetimes"), model, {amount: value => withUnit(value)});
const timeline = new Timeline(element("lanes"), model, {
  chosen: () => showChart(),
  tell: text => showDetails(text),
  ranged: range => change({time: range}),
});
const heat = new HeatMap(element("heat-map"), model, {
  tell: text => element("heat-about").textContent = text,
  ranged: range => change({time: range}),
});
const parts = {button: "thread", popup: "thread-list", filter: "thread-filter", order: "thread-order", box: "thread-rows", about: "thread-about"};
const chooser = new ThreadChooser(Object.fromEntries(Object.entries(parts).map(([part, id]) => [part, element(id)])), {
  threads: () => threadAmounts(),
  amount: value => amount(value),
  chosen: name => change({thread: name}),
});
let found = null;

// Each thread's share of everything else that is chosen.
function threadAmounts() {
  const sums = new Map(threads.map(name => [name, 0]));
  for (const row of tableRows(model, base, {...choice, thread: ""}, "thread")) if (sums.has(row.name)) sums.set(row.name, row.total);
  return [...sums].map(([name, amount]) => ({name, amount}));
}

function showChart() {
  chart.show([{shape: timeline.chart(), inverted: true, skip: 1}]);
  applySearch();
}

// The heaviest function, if none was chosen.
function busiest() {
  let best = "", most = -1;
  for (const row of blockedRows(model, base, choice)) if (row.self > most) most = row.self, best = row.of || row.name;
  return best;
}

// Choices for the middle of a sandwich: the heaviest functions, and any other name that is typed.
function offerMiddles() {
  const rows = tableRows(model, base, choice, "function").sort((a, b) => b.self - a.self).slice(0, 200);
  element("middles").replaceChildren(...rows.map(row => new Option(row.name)));
  element("middle").value = choice.middle || busiest();
  element("middle").removeAttribute("aria-invalid");
}

// One function's lines and instructions: the chosen one, or else the heaviest that has any.
function showSource() {
  const names = source.names(tableRows(model, base, choice, "function"));
  const name = source.has(choice.middle) || !names.length ? choice.middle : names[0];
  element("source-names").replaceChildren(...names.slice(0, 200).map(one => new Option(one)));
  element("source-name").value = name;
  element("source-name").removeAttribute("aria-invalid");
  const left = model.about.source.left;
  element("source-about").textContent = (choice.time ? "Of the whole recording: lines are not known by time. " : "") + "Shares are self and total of all that is chosen." +
    (left ? ` The code of ${count(left)} functions that least was spent in is not in the page.` : "");
  source.show(name, choice);
}

function panesOf(view) {
  if (view === "reversed") return [{shape: reversedShape(model, base, choice.shape), inverted: true}];
  if (view === "sandwich") {
    const {callers, callees} = sandwichShapes(model, base, choice.middle || busiest(), choice.shape);
    return [{shape: callers, inverted: false, skip: 2}, {shape: callees, inverted: true, skip: 1}];
  }
  return [{shape: base, inverted: view === "icicle"}];
}

function draw() {
  const view = choice.view, isGraph = !others.includes(view);
  base = baseShape(model, choice);
  graph.isWaiting = chart.isWaiting = choice.times === "off-cpu";
  if (view === "timeline") timeline.choose(choice);
  element("title").textContent = title();
  for (const id of ["graph", ...others]) element(id).hidden = id !== (isGraph ? "graph" : view);
  element(isGraph ? "graph" : view).setAttribute("aria-labelledby", "tab-" + view);
  for (const tab of element("views").children) {
    const on = tab.dataset.view === view;
    tab.setAttribute("aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
  }
  trail.length = 0;
  if (isGraph) graph.show(panesOf(view));
  element("legend").hidden = !isGraph || !base.waits;
  element("middle-bar").hidden = view !== "sandwich";
  if (view === "sandwich") offerMiddles(), graph.focus = {pane: graph.panes[1], node: Math.min(1, graph.panes[1].shape.count - 1)};
  if (view === "table") table.show(choice.by === "function" ? blockedRows(model, base, choice) : tableRows(model, base, choice, choice.by), choice.by, base.total[0], base.before ? base.before[0] : 0, model.isDiff);
  if (view === "source") showSource();
  if (view === "lifetimes") offerMiddles(), element("lifetimes-name").value = choice.middle, element("lifetimes-name").removeAttribute("aria-invalid"), lifetimes.show(choice, choice.middle);
  chooser.show(choice.thread);
  showFilters();
  if (view === "timeline") timeline.draw(), showChart();
  if (view === "heat") heat.show(choice, timeline.last);
  applySearch();
  zoomButtons();
  tell(isGraph ? graph.focus : null);
  if (view === "calltree") calltree.show(choice.turn === "up" ? reversedShape(model, base, choice.shape) : base, choice.turn === "up");
}

const panelOf = view => others.includes(view) ? view : "graph";
const tabs = Object.entries(views).filter(([view]) => !((view === "timeline" || view === "heat") && timeline.isEmpty) && !(view === "source" && source.isEmpty) && !(view === "lifetimes" && lifetimes.isEmpty));
element("views").replaceChildren(...tabs.map(([view, text]) => {
  const tab = document.createElement("button");
  Object.assign(tab, {type: "button", textContent: text});
  tab.dataset.view = view;
  tab.id = "tab-" + view;
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", panelOf(view));
  tab.addEventListener("click", () => change({view}));
  return tab;
}));
element("views").addEventListener("keydown", event => {
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  if (!step) return;
  const list = [...element("views").children], at = list.indexOf(document.activeElement);
  const next = list[(at + step + list.length) % list.length];
  change({view: next.dataset.view});
  next.focus();
});

// ---- telling ----

// Format nanoseconds in the largest unit, with three or more digits.
function amount(value) {
  if (unit() !== "ns") return count(value);
  const [size, name] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([least]) => Math.abs(value) >= least) || [1, "ns"];
  const digits = size > 1 ? 2 : 0;
  return `${(value / size).toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits})} ${name}`;
}
const withUnit = value => unit() === "ns" ? amount(value) : `${count(value)} ${unit()}`;
// The accuracy of an estimate: its samples, and the standard error from that of one sample. A count of blocks has no such bound.
let counted = {};
function estimate(shape, node) {
  if (model.about.estimated === undefined || choice.weight === "samples") return "";
  if (counted.base !== base) counted = {base, shape: baseShape(model, {...choice, weight: "samples"})};
  const samples = weightIn(model, counted.shape, shape, node);
  if (!samples) return "";
  const error = unit() === "count" ? "" : `, at most ±${(100 * model.about.estimated * Math.sqrt(samples) / shape.total[node]).toFixed(1)}%`;
  return `; ${count(samples)} sample${samples === 1 ? "" : "s"}${error}`;
}
// A frame's name and description.
function sentence({pane, node}) {
  const s = pane.shape, whole = s.total[0] || 1, name = graph.name(pane, node).slice(0, 2000);
  let text = ` (${withUnit(s.total[node])}, ${(100 * s.total[node] / whole).toFixed(2)}%`;
  if (s.before) text += "; " + changeWords(s.total[node], s.before[node], s.total[0], s.before[0], amount);
  const place = node && model.places[s.place[node]];
  return [name, text + `; self ${amount(s.own[node])}${estimate(s, node)})` + (place && place.object ? `  ${place.object}` : "")];
}

// On a narrow page the first part gives way to the second.
function showDetails(...parts) {
  const details = element("details");
  details.replaceChildren(...parts.map(text => Object.assign(document.createElement("span"), {textContent: text})));
  if (parts.length > 1) fitName(details.firstChild, parts[0]);
}

function tell(hit) {
  showDetails(...hit ? sentence(hit) : []);
  const current = element("current");
  if (!hit) return;
  current.textContent = sentence(hit).join("");
  current.setAttribute("aria-level", hit.pane.shape.depth[hit.node] + 1);
}

function tellTime(hit) {
  if (!hit || !hit.node) return showDetails();
  const s = hit.pane.shape, offset = timeline.range ? timeline.range[0] : 0;
  showDetails(graph.name(hit.pane, hit.node).slice(0, 2000), ` (${((s.left[hit.node] + offset) / 1e6).toFixed(3)} ms, for ${(s.size[hit.node] / 1e6).toFixed(3)} ms)`);
}

// The tooltip is at the pointer, over the graph, in full; it never receives pointer events.
function showTip(event) {
  const tip = element("tip"), hit = event && !event.buttons && graph.hover;
  tip.hidden = !hit;
  if (!hit) return;
  tip.replaceChildren(...sentence(hit).map(text => Object.assign(document.createElement("span"), {textContent: text})));
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 4)) + "px";
  tip.style.top = (event.clientY + 18 + box.height < innerHeight ? event.clientY + 18 : Math.max(4, event.clientY - box.height - 10)) + "px";
}
element("canvas").addEventListener("mousemove", showTip);
for (const kind of ["mouseleave", "mousedown", "wheel", "keydown"]) element("canvas").addEventListener(kind, () => showTip(null), {passive: true});

// ---- zoom ----

function zoomed(hit, remember) {
  if (remember) {
    const now = graph.panes.map(pane => pane.zoomed);
    if (JSON.stringify(now) !== JSON.stringify(trail[trail.length - 1] || graph.panes.map(() => 0))) trail.push(now);
    saveState(true);
  }
  zoomButtons();
  applySearch();
  tell(hit);
}
function zoomButtons() {
  const isGraph = !element("graph").hidden;
  element("back").hidden = !isGraph || !trail.length;
  element("reset").hidden = !isGraph || !graph.panes.some(pane => pane.zoomed || pane.to - pane.from < (pane.shape.size[0] || 1) * 0.999);
}
function back() {
  trail.pop();
  const to = trail[trail.length - 1] || graph.panes.map(() => 0);
  graph.panes.forEach((pane, i) => graph.zoom({pane, node: to[i]}, false));
  saveState();
  zoomButtons();
}
element("back").addEventListener("click", back);
element("reset").addEventListener("click", () => graph.reset());

// ---- search ----

// Whether each function matches. Kept while the search is the same, because panning needs it at every step.
let asked = "", verdicts = null, isLiteral = false;
function search() {
  const key = choice.matchCase + choice.search;
  if (key === asked) return;
  asked = key;
  found = verdicts = null;
  isLiteral = false;
  if (choice.search) ({pattern: found, isPlain: isLiteral} = searchPattern(choice.search, choice.matchCase));
  verdicts = found && Uint8Array.from(model.functions, name => found.test(name) ? 1 : 0);
}

function applySearch() {
  search();
  graph.found = chart.found = verdicts;
  const isShown = verdicts && !["timeline", "source", "lifetimes", "heat"].includes(choice.view);
  element("matched").textContent = isShown ? `Matched: ${matchedShare()}${isLiteral ? " (as plain text)" : ""}` : "";
  element("next").hidden = element("previous").hidden = !isShown || (element("graph").hidden && choice.view !== "calltree");
  graph.draw();
  chart.draw();
  if (choice.view === "table") table.draw();
  calltree.setFound(verdicts);
}

// Count each position along the width once: nothing below a match is examined. In a moved view, only the frame that
// spans it.
let share = {};
function matchedShare() {
  const pane = choice.view === "table" || choice.view === "calltree" ? {shape: base, zoomed: 0} : graph.panes[graph.panes.length - 1];
  const s = pane.shape, zoomed = pane.zoomed;
  if (share.shape === s && share.zoomed === zoomed && share.verdicts === verdicts) return share.text;
  let sum = 0;
  for (let n = zoomed; n < s.end[zoomed];) {
    if (n && verdicts[model.functionOf[s.place[n]]]) sum += s.size[n], n = s.end[n];
    else n++;
  }
  const part = 100 * sum / (s.size[zoomed] || 1);
  share = {shape: s, zoomed, verdicts, text: (part === 100 ? "100" : part.toFixed(1)) + "%" + (isFoundOutside(s, zoomed) ? ", more outside the zoom" : "")};
  return share.text;
}
// The callers of a frame are visible, too.
function isFoundOutside(s, zoomed) {
  for (let n = 1; zoomed && n < s.count; n++) {
    if (n === zoomed) n = s.end[zoomed];
    if (n < s.count && (s.end[n] <= zoomed || n > zoomed) && s.size[n] && verdicts[model.functionOf[s.place[n]]]) return true;
  }
  return false;
}

// Go to the next match, or the previous one; skip those too narrow to be visible.
function stepFound(direction) {
  if (choice.view === "calltree") return calltree.step(direction);
  const pane = graph.panes[graph.panes.length - 1], s = pane && pane.shape;
  if (!verdicts || !s || element("graph").hidden) return;
  const list = [];
  for (let n = 1; n < s.count; n++) if (s.size[n] * 3000 >= s.size[0] && verdicts[model.functionOf[s.place[n]]]) list.push(n);
  if (!list.length) return;
  const now = graph.focus && graph.focus.pane === pane ? graph.focus.node : 0;
  const after = list.findIndex(n => direction > 0 ? n > now : n >= now), at = after < 0 ? list.length : after;
  const node = list[(direction > 0 ? at : at - 1 + list.length) % list.length];
  if (pane.zoomed && !(node >= pane.zoomed && node < s.end[pane.zoomed])) graph.zoom({pane, node: 0});
  graph.setFocus({pane, node});
}
element("next").addEventListener("click", () => stepFound(1));
element("previous").addEventListener("click", () => stepFound(-1));
element("search").addEventListener("keydown", event => {
  if (event.key === "Enter") stepFound(event.shiftKey ? -1 : 1);
});

// ---- hide, focus, copy ----

function openMenu(hit, x, y) {
  const menu = element("menu"), name = graph.name(hit.pane, hit.node), stack = graph.stack(hit);
  const isFunction = hit.node > 0 && hit.pane.shape.place[hit.node] < model.about.places.length;
  const items = [...graph.panes.includes(hit.pane) ? [["Zoom to this frame", () => graph.zoom(hit)]] : [], ["Copy name", () => copy(name)], ["Copy stack", () => copy(stack.join(";"))]];
  if (isFunction)
    items.push(["Callers and callees", () => change({view: "sandwich", middle: name})], ["Only stacks through it", () => change({focus: name})],
               ["Hide this function", () => change({hidden: [...choice.hidden, name]})], ["Search for it", () => change({search: "^" + name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") + "$"})]);
  if (isFunction && !lifetimes.isEmpty) items.push(["How long its blocks lived", () => change({view: "lifetimes", middle: name})]);
  if (isFunction && source.has(name)) items.push(["Source and machine code", () => change({view: "source", middle: name})]);
  menu.replaceChildren(...items.map(([text, action]) => {
    const item = document.createElement("button");
    Object.assign(item, {type: "button", textContent: text});
    item.setAttribute("role", "menuitem");
    item.addEventListener("click", () => {
      closeMenu();
      action();
    });
    return item;
  }));
  menu.hidden = false;
  menu.style.left = Math.min(x, innerWidth - 210) + "px";
  menu.style.top = Math.min(y, innerHeight - 34 * items.length) + "px";
  menu.firstChild.focus();
}
function closeMenu() {
  if (element("menu").hidden) return;
  element("menu").hidden = true;
  if (!element("graph").hidden) element("canvas").focus();
  else if (!element("calltree").hidden) element("tree-rows").focus();
}
element("menu").addEventListener("keydown", event => {
  const list = [...element("menu").children], step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (step) list[(list.indexOf(document.activeElement) + step + list.length) % list.length].focus();
  else if (event.key === "Escape" || event.key === "Tab") closeMenu();
  else return;
  event.preventDefault();
  event.stopPropagation();
});
addEventListener("mousedown", event => {
  if (!event.target.closest("#menu")) element("menu").hidden = true;
});

// Without permission or a clipboard, use an old way that needs neither.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  showDetails("Copied: " + text.slice(0, 2000));
}

const ruleNames = {focus: "Through", ignore: "Not through", hide: "Without", root: "Below", frames: "Frames"};
function showFilters() {
  const list = choice.hidden.map(name => ["Hidden: " + name, {hidden: choice.hidden.filter(other => other !== name)}]);
  if (choice.focus) list.push(["Only: " + choice.focus, {focus: ""}]);
  for (const [rule, text] of Object.entries(choice.rules))
    if (text) list.push([`${ruleNames[rule]}: ${text}`, {rules: {...choice.rules, [rule]: ""}}]);
  if (choice.time) list.push([`Time: ${choice.time.map(t => (t / 1e9).toFixed(3)).join("–")} s`, {time: null}]);
  element("filters").replaceChildren(...list.map(([text, undo]) => {
    const button = document.createElement("button");
    Object.assign(button, {type: "button", textContent: text.slice(0, 200) + " ×", title: "Undo: " + text.slice(0, 500)});
    button.addEventListener("click", () => change(undo));
    return button;
  }));
  timeline.range = choice.time;
  element("all-time").disabled = !choice.time;
  element("range").textContent = choice.time ? `${choice.time.map(t => (t / 1e9).toFixed(3)).join(" s to ")} s` :
    (timeline.hasWaits ? "Orange ran, blue waited. " : timeline.grows ? `Bytes alive${choice.focus ? " that " + choice.focus.slice(0, 80) + " allocated" : ""}, by the thread that allocated them. ` : "") + "Drag across the lanes, or use the arrow keys and Enter, to choose a range; every view follows.";
}

// ---- changing ----

// Mark an invalid pattern, which selects nothing.
for (const rule of Object.keys(ruleNames))
  element("rule-" + rule).addEventListener("change", event => change({rules: {...choice.rules, [rule]: event.target.value}}));
function showRules() {
  for (const [rule, text] of Object.entries(choice.rules)) {
    const box = element("rule-" + rule);
    if (box.value !== text) box.value = text;
    if (patternOf(text)) box.removeAttribute("aria-invalid");
    else box.setAttribute("aria-invalid", "true");
  }
}

const selects = {times: "times", event: "event", group: "group", weight: "weight", shape: "shape", by: "by", turn: "turn"};
function change(what, keepUrl) {
  const times = choice.times;
  Object.assign(choice, what);
  if (choice.times !== times) offerEvents();
  for (const [id, key] of Object.entries(selects)) element(id).value = choice[key];
  element("collapse").checked = choice.collapse;
  element("options").classList.toggle("set", ["times", "event", "thread", "group", "weight", "shape", "collapse", "matchCase"].some(key => choice[key] !== defaults[key]));
  showRules();
  element("case").checked = choice.matchCase;
  if (element("search").value !== choice.search) element("search").value = choice.search;
  if (Object.keys(what).every(key => key === "search" || key === "matchCase")) applySearch();
  else draw();
  if (!keepUrl) saveState(!("search" in what) && !("matchCase" in what));
}
for (const [id, key] of Object.entries(selects)) element(id).addEventListener("change", event => change({[key]: event.target.value}));
element("collapse").addEventListener("change", event => change({collapse: event.target.checked}));
element("case").addEventListener("change", event => change({matchCase: event.target.checked}));
element("search").addEventListener("input", event => change({search: event.target.value}));
element("middle").addEventListener("change", event => {
  if (model.functions.includes(event.target.value)) change({middle: event.target.value});
  else event.target.setAttribute("aria-invalid", "true");
});
element("source-name").addEventListener("change", event => {
  if (source.has(event.target.value)) change({middle: event.target.value});
  else event.target.setAttribute("aria-invalid", "true");
});
element("lifetimes-name").addEventListener("change", event => {
  if (!event.target.value || model.functions.includes(event.target.value)) change({middle: event.target.value});
  else event.target.setAttribute("aria-invalid", "true");
});
for (const id of ["lane-filter", "lane-order"])
  element(id).addEventListener("input", () => {
    timeline.arrange(element("lane-filter").value, element("lane-order").value);
    showChart();
  });
element("all-time").addEventListener("click", () => change({time: null}));
element("save-svg").addEventListener("click", () => {
  if (element("graph").hidden && choice.view !== "timeline") graph.show(panesOf("flame"));
  download("flamegraph.svg", svgOf(choice.view === "timeline" ? chart : graph, title(), unit()), "image/svg+xml");
});
element("save-folded").addEventListener("click", () => download("stacks.folded", foldedOf(model, base), "text/plain"));

addEventListener("keydown", event => {
  if (element("keys").open) return;
  const typing = event.target.matches("input[type=search], textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    element("search").focus();
    element("search").select();
  } else if (event.key === "Escape") {
    if (typing && event.target.id === "search") change({search: ""}), element("canvas").focus();
    else if (choice.search) change({search: ""});
    else if (!element("graph").hidden) graph.reset();
  } else if (event.key === "Backspace" && !typing) {
    back();
  } else if (event.key === "?" && !typing) {
    element("keys").showModal();
  } else if ((event.key === "n" || event.key === "N") && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    stepFound(event.key === "n" ? 1 : -1);
  } else return;
  event.preventDefault();
});

// ---- state in the URL ----

// The browser's Back button undoes views and zooms, but not typing.
function saveState(isStep) {
  const state = new URLSearchParams();
  for (const [key, value] of Object.entries(choice))
    if (JSON.stringify(value) !== JSON.stringify(defaults[key])) state.set(key, typeof value === "string" ? value : JSON.stringify(value));
  if (graph.panes.some(pane => pane.zoomed)) state.set("zoom", graph.panes.map(pane => pane.zoomed).join(","));
  const text = state.toString(), url = text ? "#" + text : location.pathname + location.search;
  if (text === location.hash.slice(1)) return;
  if (isStep) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
}

function loadState() {
  const state = new URLSearchParams(location.hash.slice(1)), what = JSON.parse(JSON.stringify(defaults));
  for (const key of Object.keys(defaults)) {
    if (!state.has(key)) continue;
    try {
      const isText = typeof defaults[key] === "string", value = isText ? state.get(key) : JSON.parse(state.get(key));
      const fits = key === "view" ? tabs.some(([view]) => view === value) : key === "times" ? model.times.some(([name]) => name === value) : key === "hidden" ? Array.isArray(value) && value.every(v => typeof v === "string") :
        key === "rules" ? !!value && Object.keys(defaults.rules).every(rule => typeof value[rule] === "string") && ["", "kernel", "user"].includes(value.frames) :
        key === "time" ? Array.isArray(value) && value.length === 2 && value.every(Number.isFinite) : typeof value === typeof defaults[key];
      if (fits) what[key] = value;
    } catch {
      // Draw even if the URL was truncated.
    }
  }
  change(what, true);
  (state.get("zoom") || "").split(",").forEach((text, i) => {
    const pane = graph.panes[i], node = +text;
    if (pane && node > 0 && node < pane.shape.count) graph.zoom({pane, node}, false);
  });
}
addEventListener("hashchange", loadState);
loadState();
// For tests: what was drawn, and where.
globalThis.wickPage = {model, choice, graph, chart, timeline, calltree, source, heat, chooser, jumpArrows};
