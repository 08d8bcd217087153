/*
 * The page over a store. The selection (type, service, version, host, time) is in the address, and is the query of the store's URL; what is drawn below is
 * the page that wick flame and wick diff make of that URL. A selection that is kept to compare others with has `before.` in front of its keys.
 */
const $ = id => document.getElementById(id);
const state = new URLSearchParams(location.search);
const labels = ["type", "service", "version", "host"], selectors = [...labels, "from", "to"];
const steps = [10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400], columns = 150, rowHeight = 18, nameWidth = 160;
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

// What a store takes for a pattern is taken as it is: values are chosen from a list.
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
  $("from").value = time(from);
  $("to").value = time(to);
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
  map = {by, names, step: answer.step, rows: answer.rows, ...whole, most: Math.max(1, ...answer.rows.map(row => row[3])), chosen: {from, to}};
  drawHeat();
}

const width = () => $("heat").clientWidth - nameWidth;
const xOf = when => nameWidth + (when - map.from) / Math.max(1, map.to - map.from) * width();
const timeAt = x => Math.round(map.from + Math.min(1, Math.max(0, (x - nameWidth) / width())) * (map.to - map.from));

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

function drawHeat() {
  const style = getComputedStyle(document.body), paint = prepare($("heat"), Math.max(1, map.names.length) * rowHeight + 20);
  for (const [name, when, , value] of map.rows) {
    paint.fillStyle = colour(value / map.most);
    paint.fillRect(xOf(when), map.names.indexOf(name) * rowHeight, Math.max(1, xOf(when + map.step) - xOf(when) - 0.5), rowHeight - 1);
  }
  paint.fillStyle = style.color;
  map.names.forEach((name, i) => paint.fillText(name || "(none)", 4, i * rowHeight + rowHeight / 2, nameWidth - 8));
  const bottom = map.names.length * rowHeight + 10;
  paint.fillText(time(map.from), nameWidth, bottom);
  paint.textAlign = "right";
  paint.fillText(time(map.to), nameWidth + width(), bottom);
  const {from, to} = drag ?? map.chosen;
  paint.strokeStyle = style.color;
  paint.strokeRect(xOf(from), 0.5, Math.max(2, xOf(to) - xOf(from)), map.names.length * rowHeight);
}

function tellHeat(x, y) {
  const name = map.names[Math.floor(y / rowHeight)], when = timeAt(x);
  const cell = map.rows.find(row => row[0] === name && row[1] <= when && when < row[1] + map.step);
  $("details").textContent = cell ? `${name || "(none)"}, ${time(cell[1])}: ${cell[2].toLocaleString("en")} samples, ${cell[3].toLocaleString("en")}` : "";
}

function setHeatListeners() {
  const at = event => {
    const box = $("heat").getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  $("heat").addEventListener("pointerdown", event => {
    const [x, y] = at(event), name = map?.names[Math.floor(y / rowHeight)];
    if (map && x >= nameWidth) drag = {start: timeAt(x), from: timeAt(x), to: timeAt(x)};
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
    // Whole steps: what is seen is what is chosen.
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

function drawShare(answer, name) {
  const {from, to} = range(), paint = prepare($("line"), 200), wide = $("line").clientWidth - 60;
  const points = answer.rows.filter(row => row[1]).sort((a, b) => a[0] - b[0]).map(([when, whole, part]) => [when, part / whole]);
  const most = Math.max(0.0001, ...points.map(point => point[1]));
  paint.fillStyle = paint.strokeStyle = getComputedStyle(document.body).color;
  paint.fillText(`${(100 * most).toFixed(2)} %`, 0, 10);
  paint.fillText("0 %", 0, 190);
  paint.beginPath();
  for (const [when, part] of points) {
    const x = 55 + (when + answer.step / 2 - from) / Math.max(1, to - from) * wide, y = 190 - 180 * part / most;
    paint.lineTo(x, y);
    paint.fillRect(x - 2, y - 2, 4, 4);
  }
  paint.stroke();
  const whole = answer.rows.reduce((sum, row) => sum + row[1], 0), part = answer.rows.reduce((sum, row) => sum + row[2], 0);
  $("shared").textContent = whole ? `${name}: ${(100 * part / whole).toFixed(2)} % of all of it, in ${points.length} steps of ${answer.step} s` : "Nothing was measured here.";
  globalThis.wickFleet.points = points;
}

async function showShare() {
  const name = state.get("function") ?? "";
  $("function").value = name;
  if (name) drawShare(await ask("share", {...selection(), function: name, step: step(range())}), name);
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
    await {flame: showFlame, compare: showCompare, movers: showMovers, share: showShare}[view]?.();
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

// The token stays here: whoever gets the link has one of their own, or comes through a proxy that lets them in.
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
