/*
 * The call tree as an outline: from the root down to callees, or from the functions that ran up to their callers.
 * Rows open and close by mouse and keyboard as in WAI-ARIA's tree pattern; siblings are sorted by weight. Children
 * are sorted when their row is first opened, so a tree of a million nodes costs only what is looked at.
 */
import { Rows } from "./rows.js";
import { changePoints } from "./graph.js";
import { shortName } from "../names.js";

const treeRowHeight = 20, mostRows = 200000;

export class CallTree {
  constructor(box, head, events) {
    Object.assign(this, {box, head, events, shape: null, opened: new Set(), sorted: new Map(), list: [], place: new Map(), focus: 0, found: null});
    this.rows = new Rows(box, treeRowHeight, index => this.row(index), () => this.fit());
    box.addEventListener("keydown", event => this.key(event));
    box.addEventListener("click", event => this.click(event));
    box.addEventListener("dblclick", event => {
      const node = this.nodeOf(event);
      if (node && !event.target.closest(".twisty")) this.toggle(node);
    });
    box.addEventListener("contextmenu", event => {
      const node = this.nodeOf(event);
      if (!node) return;
      event.preventDefault();
      this.setFocus(node);
      events.menu(this.hit(node), event.clientX, event.clientY);
    });
  }

  // isUp: callers are below their callees; only first rows have a self value, because the other functions were not
  // running.
  show(shape, isUp) {
    Object.assign(this, {shape, isUp, focus: 0, holds: null});
    this.opened.clear();
    this.sorted.clear();
    // Open the heaviest path until it branches.
    for (let node = 0, next; (next = this.children(node)[0]) && this.shape.size[next] * 2 > this.shape.size[node]; node = next) this.opened.add(next);
    this.flatten();
    this.focus = this.list[0] || 0;
    this.box.scrollTop = 0;
    this.drawHead();
    this.rows.show(this.list.length);
    this.tellFocus();
  }

  hit(node) {
    return {pane: {shape: this.shape, zoomed: 0}, node};
  }

  children(node) {
    let list = this.sorted.get(node);
    if (list) return list;
    const s = this.shape;
    list = [];
    for (let k = node + 1; k < s.end[node]; k = s.end[k]) if (s.size[k]) list.push(k);
    list.sort((a, b) => s.size[b] - s.size[a] || a - b);
    this.sorted.set(node, list);
    return list;
  }

  // The visible rows, from the top; not recursive, because stacks are deep.
  flatten() {
    const list = [], waiting = [...this.children(0)].reverse();
    while (waiting.length && list.length < mostRows) {
      const node = waiting.pop();
      list.push(node);
      if (this.opened.has(node)) for (const child of [...this.children(node)].reverse()) waiting.push(child);
    }
    this.list = list;
    this.place = new Map(list.map((node, i) => [node, i]));
  }

  redraw() {
    this.flatten();
    if (!this.place.has(this.focus)) this.focus = this.list[0] || 0;
    this.rows.show(this.list.length);
    this.tellFocus();
  }

  // ---- rows ----

  columns() {
    const s = this.shape, {amount} = this.events, whole = s.total[0] || 1, percent = (v, of) => (100 * v / (of || 1)).toFixed(2) + "%";
    const own = n => this.isUp ? s.depth[n] === 1 ? s.total[n] : 0 : s.own[n];
    const list = [["Total", n => amount(s.total[n]), "wide"], ["Total %", n => percent(s.total[n], whole), ""]];
    if (s.before) list.push(["was %", n => percent(s.before[n], s.before[0]), "wide"], ["points", n => changePoints(s.total[n], s.before[n], s.total[0], s.before[0]), ""]);
    list.push(["Self", n => own(n) ? amount(own(n)) : "", "wide"], ["Self %", n => own(n) ? percent(own(n), whole) : "", ""]);
    return list;
  }

  cell(row, text, kind) {
    const cell = row.appendChild(document.createElement("span"));
    cell.className = kind;
    cell.textContent = text;
    return cell;
  }

  drawHead() {
    const row = document.createElement("div");
    row.className = "tree-row";
    for (const [title, , kind] of this.columns()) this.cell(row, title, "number " + kind);
    this.cell(row, this.isUp ? "Function, and its callers" : "Function, and what it calls", "name");
    this.head.replaceChildren(row);
  }

  row(index) {
    const node = this.list[index], s = this.shape, brothers = this.children(Math.max(0, s.parent[node])), name = this.events.name(s, node);
    const row = document.createElement("div"), columns = this.columns(), hasMore = this.children(node).length > 0;
    row.className = "tree-row" + (node === this.focus ? " chosen" : "") + (this.found && this.events.isFound(s, node) ? " found" : "");
    row.id = "tree-" + node;
    const values = columns.map(([title, value, kind]) => [title, value(node), kind]);
    const about = {role: "treeitem", "aria-level": s.depth[node], "aria-setsize": brothers.length, "aria-posinset": brothers.indexOf(node) + 1, "aria-selected": node === this.focus,
                   "aria-label": `${name}, ${values.filter(([, value]) => value).map(([title, value]) => `${title.replace(" %", "")} ${value}`).join(", ")}`};
    if (hasMore) about["aria-expanded"] = this.opened.has(node);
    for (const [key, value] of Object.entries(about)) row.setAttribute(key, value);
    for (const [, value, kind] of values) this.cell(row, value, "number " + kind);
    const cell = this.cell(row, "", "name"), twisty = this.cell(cell, hasMore ? this.opened.has(node) ? "▾" : "▸" : "", "twisty");
    cell.style.setProperty("--level", s.depth[node] - 1);
    cell.title = name.slice(0, 2000);
    twisty.setAttribute("aria-hidden", "true");
    this.cell(cell, this.events.short(name), "");
    return row;
  }

  // Shorten names that do not fit, so that the function's own name is seen. All are measured before any is changed, or each would cost a layout.
  fit() {
    const cells = [...this.box.querySelectorAll(".name")].map(cell => [cell, cell.clientWidth - cell.scrollWidth]).filter(([, rest]) => rest < 0);
    const fits = cells.map(([cell, rest]) => {
      const text = cell.lastChild, width = text.getBoundingClientRect().width;
      return [text, Math.floor([...text.textContent].length * (width + rest) / width)];
    });
    for (const [text, room] of fits) text.textContent = shortName(text.textContent, Math.max(6, room));
  }

  // ---- opening and closing ----

  nodeOf(event) {
    const row = event.target.closest("[role=treeitem]");
    return row ? +row.id.slice(5) : 0;
  }

  click(event) {
    const node = this.nodeOf(event);
    if (!node) return;
    this.setFocus(node);
    if (event.target.closest(".twisty")) this.toggle(node);
  }

  toggle(node) {
    if (!this.children(node).length) return;
    if (!this.opened.delete(node)) this.opened.add(node);
    this.redraw();
  }

  // Open everything below a row, up to the limit of rows.
  openAll(node) {
    const waiting = [node];
    for (let i = 0; i < waiting.length && waiting.length < mostRows; i++) {
      const list = this.children(waiting[i]);
      if (list.length) this.opened.add(waiting[i]);
      for (const child of list) waiting.push(child);
    }
    this.redraw();
  }

  tellFocus() {
    if (this.focus) this.box.setAttribute("aria-activedescendant", "tree-" + this.focus);
    else this.box.removeAttribute("aria-activedescendant");
    this.events.tell(this.focus ? this.hit(this.focus) : null);
  }

  setFocus(node) {
    if (!node) return;
    this.focus = node;
    this.rows.intoSight(this.place.get(node));
    this.tellFocus();
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.focus) return;
    const node = this.focus, at = this.place.get(node), last = this.list.length - 1, isOpen = this.opened.has(node), children = this.children(node);
    const to = index => this.setFocus(this.list[Math.max(0, Math.min(last, index))]);
    if (event.key === "ArrowDown") to(at + 1);
    else if (event.key === "ArrowUp") to(at - 1);
    else if (event.key === "PageDown") to(at + this.rows.page);
    else if (event.key === "PageUp") to(at - this.rows.page);
    else if (event.key === "Home") to(0);
    else if (event.key === "End") to(last);
    else if (event.key === "ArrowRight") {
      if (children.length && !isOpen) this.toggle(node);
      else if (children.length) this.setFocus(children[0]);
    } else if (event.key === "ArrowLeft") {
      if (isOpen) this.toggle(node);
      else if (this.shape.parent[node] > 0) this.setFocus(this.shape.parent[node]);
    } else if (event.key === "Enter" || event.key === " ") this.toggle(node);
    else if (event.key === "*") this.openAll(node);
    else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) {
      const box = this.box.getBoundingClientRect();
      this.events.menu(this.hit(node), box.left + 60, box.top + Math.max(0, at * treeRowHeight - this.box.scrollTop));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // ---- search ----

  setFound(found) {
    this.found = found;
    this.holds = null;
    this.rows.draw();
  }

  // Rows that have a match below them.
  findHolds() {
    const s = this.shape, holds = new Uint8Array(s.count);
    for (let n = s.count - 1; n > 0; n--) {
      if (s.size[n] && this.events.isFound(s, n)) holds[n] |= 1;
      if (holds[n]) holds[s.parent[n]] |= 2;
    }
    this.holds = holds;
  }

  // Go to the next match, or the previous one, in the order of rows as if all were open; open the rows above it.
  step(direction) {
    if (!this.found || !this.shape) return;
    if (!this.holds) this.findHolds();
    if (!this.holds[0]) return;
    let node = this.focus;
    do node = direction > 0 ? this.after(node) : this.before(node);
    while (!(this.holds[node] & 1));
    for (let up = this.shape.parent[node]; up > 0; up = this.shape.parent[up]) this.opened.add(up);
    this.flatten();
    this.rows.show(this.list.length);
    this.setFocus(node);
  }

  foundChildren(node) {
    return this.children(node).filter(child => this.holds[child]);
  }

  after(node) {
    const inner = this.foundChildren(node);
    if (inner.length) return inner[0];
    for (; node > 0; node = this.shape.parent[node]) {
      const brothers = this.children(this.shape.parent[node]), next = brothers.slice(brothers.indexOf(node) + 1).find(one => this.holds[one]);
      if (next) return next;
    }
    return 0;
  }

  before(node) {
    if (node > 0) {
      const brothers = this.children(this.shape.parent[node]), earlier = brothers.slice(0, brothers.indexOf(node)).filter(one => this.holds[one]);
      if (!earlier.length) return this.shape.parent[node];
      node = earlier[earlier.length - 1];
    }
    for (let inner; (inner = this.foundChildren(node)).length;) node = inner[inner.length - 1];
    return node;
  }
}
