/*
 * A table of functions, objects, threads or categories: sorted by any column, filtered, and with only the visible
 * rows in the document.
 */
import { changeFactor, changePoints } from "./graph.js";
import { isKernel, isWaker, seriesWanted, tableRows } from "./shape.js";
import { shortName } from "../names.js";

const rowsAtOnce = 300;
const lettersOfName = () => Math.max(12, Math.floor(((innerWidth < 700 ? 0.52 : 0.5) * innerWidth - 16) / 7.8)); // as wide as page.css lets it be

export class Table {
  constructor(section, events) {
    Object.assign(this, {section, events, rows: [], sort: "self", down: true, shown: rowsAtOnce, whole: 1});
    this.head = section.querySelector("thead");
    this.body = section.querySelector("tbody");
    this.more = section.querySelector("#more");
    this.filter = section.querySelector("#filter");
    this.filter.addEventListener("input", () => this.draw());
    addEventListener("resize", () => this.letters && this.letters !== lettersOfName() && this.draw());
    this.more.addEventListener("click", () => {
      this.shown += rowsAtOnce;
      this.draw();
    });
  }

  // by: what the rows are; isDiff adds the earlier value and the change. Shares are of each side's own total.
  show(rows, by, whole, wholeBefore, isDiff) {
    if (isDiff && !this.isDiff) this.sort = "change"; // like wick diff's table: the largest change first, in either direction
    Object.assign(this, {rows, by, whole: whole || 1, wholeBefore: wholeBefore || 1, isDiff, shown: rowsAtOnce});
    this.draw();
  }

  columns() {
    // A small window omits wide columns; a diff then keeps two of the self cost.
    const side = (self, title, before) => [[self, title, this.isDiff ? "number wide roomy" : "number wide"], [self + "Share", title + " %", this.isDiff && self === "total" ? "number wide" : "number brief"],
      ...(this.isDiff ? [[before + "Share", "was %", "number wide", title + " before, %"], [self + "Points", "points", self === "total" ? "number wide" : "number", title + ", change in points"]] : [])];
    const list = [...side("self", "Self", "selfBefore"), ...side("total", "Total", "before")];
    list.push(this.isDiff ? ["factor", "Factor", "number wide"] : ["share", "", "share"], ["name", this.by[0].toUpperCase() + this.by.slice(1), "name"]);
    return list;
  }

  drawHead(columns) {
    const row = document.createElement("tr");
    for (const [key, title, kind, label] of columns) {
      const cell = row.appendChild(document.createElement("th"));
      cell.className = kind;
      cell.scope = "col";
      if (!title) continue;
      const field = key.replace(/Share$/, "");
      const on = this.sort === field;
      cell.setAttribute("aria-sort", on ? this.down ? "descending" : "ascending" : "none");
      const button = cell.appendChild(document.createElement("button"));
      button.type = "button";
      if (label) button.title = label, button.setAttribute("aria-label", label);
      button.textContent = title + (on && (key === field || label) ? this.down ? " ↓" : " ↑" : "");
      button.addEventListener("click", () => {
        this.down = on ? !this.down : field !== "name";
        this.sort = field;
        this.draw();
        this.head.querySelectorAll("th")[cell.cellIndex].firstChild.focus();
      });
    }
    this.head.replaceChildren(row);
  }

  wanted() {
    let test = () => true;
    this.filter.removeAttribute("aria-invalid");
    try {
      const pattern = new RegExp(this.filter.value, "i");
      if (this.filter.value) test = row => pattern.test(row.name);
    } catch {
      this.filter.setAttribute("aria-invalid", "true");
    }
    const value = {
      change: r => Math.abs(r.self - r.selfBefore) || Math.abs(r.total - r.before) / 2 ** 60,
      factor: r => r.before ? r.total / r.before : Infinity,
      selfPoints: r => r.self / this.whole - r.selfBefore / this.wholeBefore, totalPoints: r => r.total / this.whole - r.before / this.wholeBefore,
    }[this.sort] || (r => r[this.sort]);
    const order = (a, b) => {
      const x = value(a), y = value(b), way = x < y ? -1 : x > y ? 1 : 0;
      return (this.down ? -way : way) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    };
    return this.rows.filter(test).sort(order);
  }

  draw() {
    const {amount} = this.events, columns = this.columns(), rows = this.wanted(), percent = (v, whole = this.whole) => (100 * v / whole).toFixed(2) + "%";
    this.letters = lettersOfName();
    this.drawHead(columns);
    const amounts = (now, then) => `${amount(now)}, was ${amount(then)}`;
    const cells = {
      self: r => amount(r.self), selfShare: r => percent(r.self), total: r => amount(r.total),
      totalShare: r => percent(r.total), selfBeforeShare: r => percent(r.selfBefore, this.wholeBefore),
      beforeShare: r => percent(r.before, this.wholeBefore),
      selfPoints: r => changePoints(r.self, r.selfBefore, this.whole, this.wholeBefore), totalPoints: r => changePoints(r.total, r.before, this.whole, this.wholeBefore),
      factor: r => changeFactor(r.total, r.before),
    };
    const list = rows.slice(0, this.shown).map(row => {
      const line = document.createElement("tr");
      line.classList.toggle("found", this.events.isFound(row.name, this.by));
      for (const [key, , kind] of columns) {
        const cell = line.appendChild(document.createElement("td"));
        cell.className = kind;
        if (kind === "share") {
          const bar = cell.appendChild(document.createElement("i"));
          bar.style.width = percent(Math.min(row.total, this.whole));
          bar.appendChild(document.createElement("b")).style.width = row.total ? 100 * row.self / row.total + "%" : 0;
        } else if (key === "name") this.drawName(cell, row);
        else cell.textContent = cells[key](row);
        if (this.isDiff && kind.startsWith("number") && key !== "factor") cell.title = key.startsWith("self") ? amounts(row.self, row.selfBefore) : amounts(row.total, row.before);
      }
      return line;
    });
    if (!list.length) list.push(this.nothing(columns.length));
    this.body.replaceChildren(...list);
    this.more.hidden = rows.length <= this.shown;
    this.more.textContent = `Show more of ${rows.length.toLocaleString("en")}`;
  }

  nothing(columns) {
    const line = document.createElement("tr"), cell = line.appendChild(document.createElement("td"));
    Object.assign(cell, {className: "nothing", colSpan: columns, textContent: this.rows.length ? `No ${this.by} matches the filter.` : "There is nothing to show."});
    return line;
  }

  drawName(cell, row) {
    cell.title = row.name.slice(0, 2000);
    if (this.by !== "function" && this.by !== "thread") {
      cell.textContent = shortName(row.name, this.letters);
      return;
    }
    const button = cell.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = shortName(row.name, this.letters);
    button.addEventListener("click", () => this.events.choose(row.of || row.name, this.by));
  }
}

// ---- waits by the function that blocked ----

/*
 * Like src/view/blocked.c. Every wait ends in the scheduler, which says nothing: a row is the last function outside
 * the kernel, and the system call, page fault or preemption in which it waits.
 */
const isScheduling = name => name.includes("schedule") || name === "__switch_to";
function reasonOf(name) {
  const call = /^__(?:x64|arm64|ia32|se|do)_sys_(.*)/s.exec(name);
  return call ? call[1] : name.includes("page_fault") ? "page fault" : /exit_to_user_mode|preempt/.test(name) ? "preempted" : "";
}

// The function to which a wait that ends at a node belongs; `of` is the function, and empty for kernel threads.
function blockedAt(model, base, node) {
  const real = model.about.places.length;
  let reason = "", innermost = "", of = "";
  for (let n = node; n > 0 && base.place[n] < real; n = base.parent[n]) {
    const {name, kinds} = model.places[base.place[n]];
    if (kinds & isWaker) continue;
    if (!(kinds & isKernel)) {
      of = name;
      break;
    }
    reason = reasonOf(name) || reason;
    if (!innermost && !isScheduling(name)) innermost = name;
  }
  const why = reason || innermost;
  return {of, name: of ? of + (why ? ` [${why}]` : "") : why || "[kernel]"};
}

// ---- allocations by the function that wanted them ----

// Like src/view/sites.c.
const isAllocating = name => /alloc/i.test(name) || /^(__GI_)?_*(mmap|mmap64|mremap|brk|brk_call|sbrk)$|^(posix_memalign|memalign)$/.test(name) || name.startsWith("operator new") || name.startsWith("[libwick-heap.so");
function siteRows(model, base, choice) {
  const rows = tableRows(model, base, choice, "function"), byName = new Map(rows.map(row => [row.name, row])), real = model.about.places.length;
  for (let n = 1; n < base.count; n++) {
    if (!base.self[n] || base.place[n] >= real) continue;
    let site = n;
    while (base.parent[site] > 0 && base.place[base.parent[site]] < real && isAllocating(model.places[base.place[site]].name)) site = base.parent[site];
    if (site === n) continue;
    byName.get(model.places[base.place[n]].name).self -= base.self[n];
    byName.get(model.places[base.place[site]].name).self += base.self[n];
  }
  return rows;
}

// The table by function, with the self time of waits moved to the functions that blocked.
export function blockedRows(model, base, choice) {
  if (model.isMemory && !model.isDiff) return siteRows(model, base, choice);
  const list = tableRows(model, base, choice, "function"), wanted = seriesWanted(model, choice);
  const isAll = model.series.every((one, i) => !wanted[i] || one.waits), waited = isAll ? base.self : base.selfWaits;
  if (!waited || choice.rules.frames === "kernel") return list;
  const rows = new Map(list.map(row => [row.name, row]));
  for (let n = 1; n < base.count; n++) {
    const now = waited[n], before = isAll && base.selfBefore ? base.selfBefore[n] : 0;
    if ((!now && !before) || base.place[n] >= model.about.places.length) continue;
    const last = rows.get(model.places[base.place[n]].name), {name, of} = blockedAt(model, base, n);
    if (name === last.name) continue;
    last.self -= now;
    last.selfBefore -= before;
    if (!rows.has(name)) rows.set(name, {name, of, self: 0, selfBefore: 0, total: 0, before: 0});
    const row = rows.get(name);
    row.self += now, row.total += now;
    row.selfBefore += before, row.before += before;
  }
  return [...rows.values()];
}
