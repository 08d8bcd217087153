/*
 * The page of a profile that is too large to be sent: it requests what it shows. A view has the nodes below one node
 * that are wide enough to be visible; zooming in requests those below the clicked frame. The state is in the address.
 */
const $ = id => document.getElementById(id);
const state = new URLSearchParams(location.search);
// Which profile: a file, or a selection from a store.
const profile = Object.fromEntries([...state].filter(([key]) => !["view", "at", "q", "function", "sort", "ask", "thread", "since", "until"].includes(key)));
const frameHeight = 17;
let unit = "", whole = 0, pattern = null;
// Which part of it is shown: a thread, a time range.
const part = () => Object.fromEntries(["thread", "since", "until"].filter(key => state.get(key)).map(key => [key, state.get(key)]));

const count = value => unit === "ns" ? `${(value / 1e9).toLocaleString("en", {maximumFractionDigits: 3})} s` : `${value.toLocaleString("en")} ${unit}`;
const share = (value, of = whole) => of ? `${(100 * value / of).toFixed(2)} %` : "";

function wrong(text) {
  $("wrong").textContent = text ?? "";
  $("wrong").hidden = !text;
}

async function ask(question, values = {}) {
  const response = await fetch(`${question}?${new URLSearchParams({...profile, ...part(), ...values})}`);
  const answer = await response.json().then(value => value, () => ({error: `The server answered ${response.status}.`}));
  if (answer.error) throw new Error(answer.error);
  return answer;
}

// Show an error, and carry on.
const guarded = work => async (...values) => {
  try {
    await work(...values);
    wrong();
  } catch (error) {
    wrong(error.message);
  }
};

// ---- frames on a canvas ----

class Frames {
  constructor(canvas, chosen) {
    this.canvas = canvas;
    this.upwards = canvas.id === "callers";
    this.view = null;
    this.drawn = 0;
    canvas.addEventListener("click", event => {
      const node = this.at(event);
      if (node) chosen(node);
    });
    canvas.addEventListener("mousemove", event => this.tell(this.at(event)));
  }

  show(answer) {
    const names = answer.names;
    this.nodes = answer.nodes.map(([number, depth, name, left, total, self, colour]) => ({number, depth, name: names[name], left, total, self, colour}));
    this.total = this.nodes.length ? this.nodes[0].total : 0;
    this.depth = this.nodes.reduce((deepest, node) => Math.max(deepest, node.depth), 0);
    this.whole = answer.all ?? answer.whole;
    this.draw();
  }

  y(depth) {
    return (this.upwards ? this.depth - depth : depth) * frameHeight;
  }

  draw() {
    if (!this.nodes) return;
    const ratio = devicePixelRatio || 1, width = this.canvas.clientWidth, height = (this.depth + 1) * frameHeight;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const paint = this.canvas.getContext("2d");
    paint.scale(ratio, ratio);
    paint.font = "12px monospace";
    paint.textBaseline = "middle";
    const letter = paint.measureText("m").width, scale = this.total ? width / this.total : 0;
    const mark = getComputedStyle(document.documentElement).getPropertyValue("--mark");
    for (const node of this.nodes) {
      const x = node.left * scale, size = node.total * scale, y = this.y(node.depth);
      paint.fillStyle = pattern?.test(node.name) ? mark : node.colour;
      paint.fillRect(x, y, Math.max(size - 0.5, 0.5), frameHeight - 1);
      const letters = Math.floor((size - 6) / letter);
      if (letters < 3) continue;
      paint.fillStyle = "#000";
      paint.fillText(node.name.length > letters ? node.name.slice(0, letters - 1) + "…" : node.name, x + 3, y + frameHeight / 2);
    }
    this.drawn++;
  }

  at(event) {
    if (!this.nodes) return null;
    const box = this.canvas.getBoundingClientRect(), level = Math.floor((event.clientY - box.top) / frameHeight);
    const depth = this.upwards ? this.depth - level : level, weight = (event.clientX - box.left) / box.width * this.total;
    return this.nodes.find(node => node.depth === depth && node.left <= weight && weight < node.left + node.total);
  }

  tell(node) {
    $("details").textContent = node ? `${node.name}: ${count(node.total)} (${share(node.total, this.whole)}), itself ${count(node.self)}` : "";
  }
}

// ---- the part that is shown ----

const seconds = value => length < 1e9 ? `${(value / 1e6).toFixed(3)} ms` : `${(value / 1e9).toFixed(3)} s`;
let threads = [], length = 0, sums = [];

// Where the pointer went down and where it is, as shares of the width.
let drag = null;

function drawTimeline() {
  const canvas = $("timeline"), ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight, most = Math.max(1, ...sums);
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const paint = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  paint.scale(ratio, ratio);
  paint.fillStyle = style.getPropertyValue("--link");
  sums.forEach((sum, i) => paint.fillRect(i * width / sums.length, height * (1 - sum / most), Math.max(1, width / sums.length - 0.5), height * sum / most));
  const [from, to] = drag ? [Math.min(...drag), Math.max(...drag)] : [(state.get("since") ?? 0) / length, (state.get("until") ?? length) / length];
  paint.fillStyle = style.getPropertyValue("--back");
  paint.globalAlpha = 0.7;
  paint.fillRect(0, 0, from * width, height);
  paint.fillRect(to * width, 0, width, height);
}

async function showPart() {
  const {thread, since, until} = part();
  $("thread").value = thread ?? "";
  $("whole").hidden = !since && !until;
  $("span").textContent = !length ? "" : since || until ? `${seconds(since ?? 0)} to ${seconds(until ?? length)} of ${seconds(length)}` : seconds(length);
  if (!length) return;
  sums = (await ask("timeline", {count: Math.max(100, Math.min(1000, $("timeline").clientWidth >> 1))})).sums;
  drawTimeline();
}

async function startPart() {
  ({threads, nanoseconds: length} = await ask("threads"));
  threads.sort((a, b) => b[1] - a[1]);
  $("threads").replaceChildren(...threads.slice(0, 1000).map(([name, weight]) => {
    const option = document.createElement("option");
    option.value = name;
    option.label = count(weight);
    return option;
  }));
  $("timeline").hidden = !length;
  $("choose").hidden = threads.length < 2 && !length;
}

function setPartListeners() {
  const canvas = $("timeline"), share = event => Math.min(1, Math.max(0, (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth));
  canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    drag = [share(event), share(event)];
  });
  canvas.addEventListener("pointermove", event => {
    if (!drag) return;
    drag[1] = share(event);
    drawTimeline();
  });
  canvas.addEventListener("pointerup", () => {
    const [from, to] = [Math.min(...drag), Math.max(...drag)];
    drag = null;
    if (to - from > 0.001) go({since: Math.round(from * length), until: Math.round(to * length), at: 0});
    else drawTimeline();
  });
  $("thread").addEventListener("change", () => go({thread: $("thread").value, at: 0}));
  $("whole").addEventListener("click", () => go({since: "", until: "", at: 0}));
}

// ---- views ----

const graph = new Frames($("canvas"), node => go({at: node.number}));
const callers = new Frames($("callers"), node => go({view: "around", function: node.name}));
const callees = new Frames($("callees"), node => go({view: "around", function: node.name}));

async function showGraph() {
  const answer = await ask("nodes", {at: state.get("at") ?? 0, width: Math.max(400, $("canvas").clientWidth)});
  const button = ([number, name]) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = name;
    element.addEventListener("click", () => go({at: number}));
    return element;
  };
  $("path").replaceChildren(...answer.path.map(button), answer.left_out ? `${answer.left_out.toLocaleString("en")} frames are too narrow to be seen; click a frame to see what is below it` : "");
  graph.show(answer);
}

let rows = 0;

function addRow([name, self, total, category]) {
  const row = $("table").querySelector("tbody").insertRow();
  for (const value of [self, total]) {
    const cell = row.insertCell();
    cell.className = "number";
    cell.textContent = `${count(value)} ${share(value)}`;
  }
  const cell = row.insertCell(), button = document.createElement("button");
  cell.className = "name";
  button.type = "button";
  button.textContent = name;
  button.addEventListener("click", () => go({view: "around", function: name}));
  cell.append(button);
  row.insertCell().textContent = category;
}

async function showTable(more) {
  const sort = state.get("sort") ?? "self";
  const answer = await ask("table", {sort, filter: $("filter").value, from: more ? rows : 0, count: 200});
  if (!more) {
    $("table").querySelector("tbody").replaceChildren();
    rows = 0;
  }
  answer.rows.forEach(addRow);
  rows += answer.rows.length;
  $("count").textContent = `${answer.count.toLocaleString("en")} functions`;
  $("more").hidden = rows >= answer.count;
  for (const button of document.querySelectorAll("[data-sort]")) button.setAttribute("aria-pressed", button.dataset.sort === sort);
}

async function showAround() {
  const name = state.get("function") ?? "";
  $("function").value = name;
  if (!name) return;
  callers.show(await ask("around", {function: name, callers: 1}));
  callees.show(await ask("around", {function: name, callers: 0}));
}

const search = guarded(async () => {
  const wanted = state.get("q") ?? "";
  $("search").value = wanted;
  pattern = null;
  $("matched").textContent = "";
  if (wanted) {
    const answer = await ask("search", {for: wanted});
    $("matched").textContent = `${share(answer.share)}: ${count(answer.share)}`;
    pattern = new RegExp(wanted, "su");
  }
  for (const frames of [graph, callers, callees]) frames.draw();
});

const show = guarded(async () => {
  const view = state.get("view") ?? "graph";
  for (const name of ["graph", "table", "around"]) $(name).hidden = name !== view;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-selected", button.dataset.view === view);
  await showPart();
  await (view === "table" ? showTable() : view === "around" ? showAround() : showGraph());
  globalThis.wickAsk.shown++;
});

function go(values) {
  for (const [key, value] of Object.entries(values)) {
    if (value === "") state.delete(key);
    else state.set(key, value);
  }
  history.pushState(null, "", "?" + state);
  return show();
}

function setListeners() {
  for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => go({view: button.dataset.view}));
  for (const button of document.querySelectorAll("[data-sort]")) button.addEventListener("click", () => go({sort: button.dataset.sort}));
  $("search").addEventListener("change", () => {
    state.set("q", $("search").value);
    history.replaceState(null, "", "?" + state);
    search();
  });
  $("function").addEventListener("change", () => go({function: $("function").value}));
  $("filter").addEventListener("input", () => guarded(showTable)());
  $("more").addEventListener("click", () => guarded(showTable)(true));
  addEventListener("resize", () => show());
  addEventListener("popstate", () => {
    for (const key of [...state.keys()]) state.delete(key);
    for (const [key, value] of new URLSearchParams(location.search)) state.set(key, value);
    search();
    show();
  });
  addEventListener("keydown", event => {
    if (event.key === "/" && event.target.tagName !== "INPUT") {
      event.preventDefault();
      $("search").focus();
    }
  });
}

const start = guarded(async () => {
  $("title").textContent = document.title = profile.run ?? "Flame Graph";
  $("all").hidden = top !== self;
  const info = await ask("info");
  unit = info.unit;
  whole = info.total;
  $("about").textContent = `${info.kind}, ${count(info.total)}, ${info.functions.toLocaleString("en")} functions, ${info.nodes.toLocaleString("en")} frames`;
  $("notes").hidden = !info.notes.length;
  $("notes").querySelector("summary").textContent = `${info.notes.length} notes`;
  $("notes").querySelector("ul").replaceChildren(...info.notes.map(note => {
    const item = document.createElement("li");
    item.textContent = note;
    return item;
  }));
  await startPart();
  await search();
  await show();
});

globalThis.wickAsk = {graph, callers, callees, state, shown: 0};
setListeners();
setPartListeners();
start();
