/* The list of profiles. Describing a profile requires reading it: that is requested one by one, and not for large
   ones. */
const $ = id => document.getElementById(id);
const most = 16 << 20; // bytes of a profile that is read for the list
const rows = [];

const size = bytes => {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1000;
    unit++;
  }
  return `${unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
};
const time = seconds => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC";
const total = info => info.unit === "ns" ? `${(info.total / 1e9).toLocaleString("en", {maximumFractionDigits: 3})} s` : `${info.total.toLocaleString("en")} ${info.unit}`;
const link = name => "profile?run=" + encodeURIComponent(name);

function wrong(text) {
  $("wrong").textContent = text;
  $("wrong").hidden = false;
}

function cell(row, text, kind) {
  const td = row.insertCell();
  td.textContent = text;
  if (kind) td.className = kind;
  return td;
}

const chosen = () => rows.filter(row => row.box.checked).map(row => row.run);

function addRow(run) {
  const row = $("runs").tBodies[0].insertRow();
  const box = document.createElement("input"), anchor = document.createElement("a");
  box.type = "checkbox";
  box.setAttribute("aria-label", "Choose " + run.name);
  box.addEventListener("change", () => $("compare").disabled = chosen().length !== 2);
  row.insertCell().append(box);
  anchor.href = link(run.name);
  anchor.textContent = run.name;
  cell(row, "", "name").append(anchor);
  cell(row, time(run.time));
  cell(row, size(run.size), "number");
  rows.push({run, row, box, kind: cell(row, run.run ? "run" : ""), total: cell(row, "", "number")});
}

// The older one is BEFORE.
function compare() {
  const [after, before] = chosen().sort((a, b) => b.time - a.time);
  location.href = `compare?before=${encodeURIComponent(before.name)}&after=${encodeURIComponent(after.name)}`;
}

function filter() {
  const wanted = $("filter").value.toLowerCase();
  for (const {run, row} of rows) row.hidden = !run.name.toLowerCase().includes(wanted);
}

async function readAll() {
  for (const {run, kind, total: cellOfTotal} of rows) {
    if (run.size > most) {
      cellOfTotal.textContent = "—";
      cellOfTotal.title = "Too large to be read for the list";
      continue;
    }
    const response = await fetch("info?run=" + encodeURIComponent(run.name));
    const info = await response.json().then(value => value, () => ({error: "no answer"}));
    if (info.error) {
      kind.textContent = "can't be read";
      kind.title = info.error;
    } else {
      kind.textContent = run.run ? `run (${info.kind})` : info.kind;
      cellOfTotal.textContent = total(info);
    }
  }
  globalThis.wickListDone = true;
}

async function start() {
  const response = await fetch("runs");
  if (!response.ok) return wrong(`The server answered ${response.status}.`);
  const list = await response.json();
  list.runs.forEach(addRow);
  $("about").textContent = list.count > list.runs.length ? `the newest ${list.runs.length} of ${list.count}` : `${list.count}, newest first`;
  if (!list.count) wrong("There are no profiles in what wick serve was given.");
  $("compare").addEventListener("click", compare);
  $("filter").addEventListener("input", filter);
  await readAll();
}

start().then(null, error => wrong(`wick serve does not answer any more (${error.message}).`));
