/*
 * The page for a store. The selection (type, service, version, host, time) is in the address, and is the query of the
 * store's URL; below it is the page that wick flame and wick diff make for that URL. The keys of a selection that
 * others are compared with have the prefix `before.`.
 */
const $ = id => document.getElementById(id);
const state = new URLSearchParams(location.search);
const labels = ["type", "service", "version", "host"], selectors = [...labels, "from", "to"];
const steps = [10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400], columns = 150, rowHeight = 18;
let span = {from: 0, to: 0}, map = null, drag = null;

function wrong(text) {
  $("wrong").textContent = text ?? "";
  $("wrong").hidden = !text;
}

async function ask(question, values) {
  const response = await fetch(`${question}?${new URLSearchParams(values)}`);
  const answer = await response.json().then(value => value, () => ({error: `The server answered ${response.status}.`}));
  if (answer.error) throw new Error(answer.error);
  return answer;
}

// Escape characters that are special in a store's patterns: values are chosen from a list.
const exact = value => value.replace(/[*?[\]\\]/g, "\\$&");
const plain = value => value.replace(/\\([*?[\]\\])/g, "$1");
const time = seconds => new Date(seconds * 1000).toISOString().slice(0, 19) + "Z";

function selection(prefix = "", without = []) {
  const values = {};
  for (const [key, value] of state) {
    const name = key.slice(prefix.length);
    if (key.startsWith(prefix) && value && (selectors.includes(name) || name.startsWith("label.")) && !without.includes(name)) values[name] = value;
  }
  return values;
}

const prefixed = (prefix, values) => Object.fromEntries(Object.entries(values).map(([key, value]) => [prefix + key, value]));
const told = values => Object.entries(values).map(([key, value]) => `${key} ${plain(value)}`).join(", ") || "everything";
const seconds = value => /^\d+$/.test(value ?? "") ? Number(value) : value ? Date.parse(value) / 1000 : NaN;

function range() {
  const from = seconds(state.get("from")), to = seconds(state.get("to"));
  return {from: isNaN(from) ? span.from : from, to: isNaN(to) ? span.to + 1 : to};
}

function step({from, to}) {
  return steps.find(one => (to - from) / one <= columns) ?? Math.ceil((to - from) / columns);
}

// ---- choosing ----

function fill(select, rows, chosen, all) {
  const names = rows.map(row => row[0]);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  const options = names.map(name => new Option(name || "(none)", exact(name)));
  select.replaceChildren(...(all ? [new Option("all", "")] : []), ...options);
  select.value = chosen ? exact(chosen) : all ? "" : select.options[0]?.value ?? "";
}

async function fillLabels() {
  await Promise.all(labels.map(async label => {
    const {rows} = await ask("values", {...selection("", [label, "from", "to"]), label});
    fill($(label), rows, plain(state.get(label) ?? ""), label !== "type" || !rows.length);
  }));
  const {from, to} = range();
  $("from").value = from || state.has("from") ? time(from) : "";
  $("to").value = span.to || state.has("to") ? time(to) : "";
}

// ---- the heat map ----

function colour(part) {
  return part ? `hsl(${40 - 40 * part} 90% ${92 - 50 * part}%)` : "transparent";
}

async function showHeat() {
  const {from, to} = range(), by = state.get("by") ?? "service";
  $("by").value = by;
  const size = step({from: span.from, to: span.to + 1}), whole = {from: Math.floor(span.from / size) * size, to: (Math.floor(span.to / size) + 1) * size};
  const answer = await ask("heat", {...selection("", ["from", "to", by]), ...(span.to ? whole : {}), by, step: size});
  const sums = new Map();
  for (const [name, , , value] of answer.rows) sums.set(name, (sums.get(name) ?? 0) + value);
  const names = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a)); // the heaviest on top
  map = {by, names, step: answer.step, rows: answer.rows, ...whole, most: Math.max(1, ...answer.rows.map(row => row[3])),
    chosen: {from: state.has("from") ? from : whole.from, to: state.has("to") ? to : whole.to}};
  drawHeat();
}

const nameWidth = () => Math.min(160, $("heat").clientWidth * 0.3);
const width = () => $("heat").clientWidth - nameWidth();
const xOf = when => nameWidth() + (when - map.from) / Math.max(1, map.to - map.from) * width();
const timeAt = x => Math.round(map.from + Math.min(1, Math.max(0, (x - nameWidth()) / width())) * (map.to - map.from));

function prepare(canvas, height) {
  const ratio = devicePixelRatio || 1, paint = canvas.getContext("2d");
  canvas.style.height = `${height}px`;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = height * ratio;
  paint.scale(ratio, ratio);
  paint.font = "12px system-ui, sans-serif";
  paint.textBaseline = "middle";
  return paint;
}

// The start and end of the time, below it; without seconds and, if both do not fit, without the end.
function drawTimes(paint, {from, to}, x, wide, y) {
  const [first, last] = [from, to].map(when => time(when).replace("T", " ").slice(0, 16) + " UTC");
  paint.textAlign = "left";
  paint.fillText(first, x, y);
  paint.textAlign = "right";
  if (2 * paint.measureText(first).width + 10 < wide) paint.fillText(last, x + wide, y);
  paint.textAlign = "left";
}

// Whether the selection includes a row of the map.
const isChosen = name => !state.has(map.by) || plain(state.get(map.by)) === name;

function drawHeat() {
  const style = getComputedStyle(document.body), paint = prepare($("heat"), Math.max(1, map.names.length) * rowHeight + 20);
  for (const [name, when, , value] of map.rows) {
    paint.globalAlpha = isChosen(name) ? 1 : 0.25;
    paint.fillStyle = colour(value / map.most);
    paint.fillRect(xOf(when), map.names.indexOf(name) * rowHeight, Math.max(1, xOf(when + map.step) - xOf(when) - 0.5), rowHeight - 1);
  }
  paint.globalAlpha = 1;
  paint.fillStyle = style.color;
  map.names.forEach((name, i) => paint.fillText(name || "(none)", 4, i * rowHeight + rowHeight / 2, nameWidth() - 8));
  if (span.to) drawTimes(paint, map, nameWidth(), width(), map.names.length * rowHeight + 10);
  const {from, to} = drag ?? map.chosen;
  paint.strokeStyle = style.color;
  paint.strokeRect(xOf(from), 0.5, Math.max(2, xOf(to) - xOf(from)), map.names.length * rowHeight);
}

function tellHeat(x, y) {
  const name = map.names[Math.floor(y / rowHeight)], when = timeAt(x);
  const cell = map.rows.find(row => row[0] === name && row[1] <= when && when < row[1] + map.step);
  $("details").textContent = cell ? `${name || "(none)"}, ${time(cell[1])}: ${measured(cell[2], cell[3])}` : "";
}

// "12 samples, 0.63 s": a value in the unit of its type, unless it is the number of samples.
function measured(samples, value) {
  const unit = plain($("type").value).split("/").at(-1), counted = `${samples.toLocaleString("en")} samples`;
  const shown = unit === "nanoseconds" ? `${(value / 1e9).toLocaleString("en", {maximumFractionDigits: 2})} s` : `${value.toLocaleString("en")} ${unit}`;
  return unit === "count" && value === samples ? counted : `${counted}, ${shown}`;
}

// Whether anything was measured in the selection, by the map's rows: these lack only the dimension that the map
// itself shows.
function isEmpty() {
  const {from, to} = map.chosen;
  return !map.rows.some(([name, when]) => isChosen(name) && when < to && when + map.step > from);
}

function setHeatListeners() {
  const at = event => {
    const box = $("heat").getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  $("heat").addEventListener("pointerdown", event => {
    const [x, y] = at(event), name = map?.names[Math.floor(y / rowHeight)];
    if (map && x >= nameWidth()) drag = {start: timeAt(x), from: timeAt(x), to: timeAt(x)};
    else if (name !== undefined) go({[map.by]: exact(name)});
    if (drag) $("heat").setPointerCapture(event.pointerId);
  });
  $("heat").addEventListener("pointermove", event => {
    const [x, y] = at(event);
    if (!map) return;
    tellHeat(x, y);
    if (!drag) return;
    drag.from = Math.min(drag.start, timeAt(x));
    drag.to = Math.max(drag.start, timeAt(x));
    drawHeat();
  });
  $("heat").addEventListener("pointerup", () => {
    const chosen = drag;
    drag = null;
    // Whole steps: the selection is what is visible.
    if (chosen) go({from: Math.floor(chosen.from / map.step) * map.step, to: (Math.floor(chosen.to / map.step) + 1) * map.step});
  });
}

// ---- views ----

function frame(id, url) {
  const element = $(id).querySelector("iframe");
  if (element.dataset.url !== url) element.src = element.dataset.url = url;
}

function showFlame() {
  frame("flame", "flame?" + new URLSearchParams(selection()));
}

function showCompare() {
  const before = selection("before."), has = Object.keys(before).length > 0;
  $("no-before").hidden = has;
  $("compare").querySelector("iframe").hidden = !has;
  if (has) frame("compare", "compare?" + new URLSearchParams({...selection(), ...prefixed("before.", before)}));
}

function addMover(row) {
  const tr = $("movers").querySelector("tbody").insertRow(), change = row.self_pct - row.self_pct_before;
  for (const text of [`${row.self_pct_before.toFixed(2)} %`, `${row.self_pct.toFixed(2)} %`, `${change > 0 ? "+" : ""}${change.toFixed(2)} %`]) {
    const cell = tr.insertCell();
    cell.className = "number";
    cell.textContent = text;
  }
  const cell = tr.insertCell(), button = document.createElement("button");
  cell.className = "name";
  button.type = "button";
  button.textContent = row.name;
  button.addEventListener("click", () => go({view: "share", function: row.name}));
  cell.append(button);
}

// By default the last two versions, in the order of their names.
async function showMovers() {
  const {rows} = await ask("values", {...selection("", ["version"]), label: "version"});
  const before = state.get("before.version") || exact(rows.at(-2)?.[0] ?? ""), after = state.get("version") || exact(rows.at(-1)?.[0] ?? "");
  fill($("version-before"), rows, plain(before));
  fill($("version-after"), rows, plain(after));
  $("movers").querySelector("tbody").replaceChildren();
  $("moved").textContent = before && after ? "Shares of what each version spends itself, largest change first." : "There are no two versions here.";
  if (!before || !after) return;
  const common = selection("", ["version"]);
  const answer = await ask("movers", {...common, version: after, ...prefixed("before.", {...common, version: before})});
  answer.rows.slice(0, 50).forEach(addMover);
}

function duration(seconds) {
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([size]) => seconds % size === 0);
  return `${seconds / size} ${unit}`;
}

function drawShare(answer, name) {
  const {from, to} = range(), paint = prepare($("line"), 220), wide = $("line").clientWidth - 60;
  const points = answer.rows.filter(row => row[1]).sort((a, b) => a[0] - b[0]).map(([when, whole, part]) => [when, part / whole]);
  const most = Math.max(0.0001, ...points.map(point => point[1]));
  paint.fillStyle = paint.strokeStyle = getComputedStyle(document.body).color;
  paint.fillText(`${(100 * most).toFixed(2)} %`, 0, 10);
  paint.fillText("0 %", 0, 190);
  drawTimes(paint, {from, to}, 55, wide, 210);
  paint.beginPath();
  for (const [when, part] of points) {
    const x = 55 + (when + answer.step / 2 - from) / Math.max(1, to - from) * wide, y = 190 - 180 * part / most;
    paint.lineTo(x, y);
    paint.fillRect(x - 2, y - 2, 4, 4);
  }
  paint.stroke();
  const whole = answer.rows.reduce((sum, row) => sum + row[1], 0), part = answer.rows.reduce((sum, row) => sum + row[2], 0);
  $("shared").textContent = whole ? `${name}: ${(100 * part / whole).toFixed(2)} % of all of it, in ${points.length} steps of ${duration(answer.step)}` : "Nothing was measured here.";
  globalThis.wickFleet.points = points;
}

async function showShare() {
  const name = state.get("function") ?? "";
  $("function").value = name;
  if (name) drawShare(await ask("share", {...selection(), function: name, step: step(range())}), name);
}

// An agent's first batch comes after a minute: look for it.
function tellNothing() {
  $("nothing").hidden = !isEmpty();
  $("clear").hidden = !span.to;
  $("nothing-of").textContent = span.to ? `Nothing was measured for this selection (${told(selection())}).`
    : "Nothing is stored yet. wick agent sends its first profiles after about a minute; this page shows them as soon as they are there.";
}

async function waitForFirst() {
  try {
    while (!span.to) {
      await new Promise(done => setTimeout(done, 2000));
      span = await ask("span", {});
    }
    await show();
  } catch (error) {
    wrong(error.message);
  }
}

async function show() {
  const view = state.get("view") ?? "flame", before = selection("before.");
  for (const name of ["flame", "compare", "movers", "share"]) $(name).hidden = name !== view;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-selected", button.dataset.view === view);
  $("before").textContent = Object.keys(before).length ? `Compared with: ${told(before)}` : "";
  try {
    wrong();
    await fillLabels();
    await showHeat();
    tellNothing();
    if (isEmpty()) $(view).hidden = true;
    else await {flame: showFlame, compare: showCompare, movers: showMovers, share: showShare}[view]?.();
  } catch (error) {
    wrong(error.message);
  }
  globalThis.wickFleet.shown++;
}

function go(values) {
  for (const [key, value] of Object.entries(values)) {
    if (value === "") state.delete(key);
    else state.set(key, value);
  }
  history.pushState(null, "", "?" + state);
  return show();
}

// The token stays here: the recipient of a link has their own, or comes through a proxy that lets them in.
function link() {
  return `${location.origin}/-/?${state}`;
}

function keep() {
  const values = prefixed("before.", selection());
  for (const key of [...state.keys()]) if (key.startsWith("before.")) state.delete(key);
  return go(Object.keys(values).length ? {...values, view: "compare"} : {"before.from": String(span.from), view: "compare"});
}

function setListeners() {
  for (const label of labels) $(label).addEventListener("change", () => go({[label]: $(label).value}));
  for (const end of ["from", "to"]) $(end).addEventListener("change", () => go({[end]: isNaN(seconds($(end).value)) ? "" : String(Math.floor(seconds($(end).value)))}));
  for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => go({view: button.dataset.view}));
  $("clear").addEventListener("click", () => go(Object.fromEntries(Object.keys(selection()).map(key => [key, ""]))));
  $("all-time").addEventListener("click", () => go({from: "", to: ""}));
  $("by").addEventListener("change", () => go({by: $("by").value}));
  $("keep").addEventListener("click", keep);
  $("function").addEventListener("change", () => go({function: $("function").value}));
  $("version-before").addEventListener("change", () => go({"before.version": $("version-before").value}));
  $("version-after").addEventListener("change", () => go({version: $("version-after").value}));
  $("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(link()).then(() => $("copied").textContent = "copied", () => $("copied").textContent = link());
  });
  setHeatListeners();
  addEventListener("resize", () => map && drawHeat());
  addEventListener("popstate", () => {
    for (const key of [...state.keys()]) state.delete(key);
    for (const [key, value] of new URLSearchParams(location.search)) state.set(key, value);
    show();
  });
}

globalThis.wickFleet = {state, shown: 0, link, points: []};
setListeners();
try {
  span = await ask("span", {});
} catch (error) {
  wrong(error.message);
}
await show();
if (!span.to) await waitForFirst();
