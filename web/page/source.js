/*
 * One function as source and as machine code, with the cost of each line and instruction: the numbers of wick
 * annotate, for the chosen events and threads. Inlined code belongs to the line that called it. Jumps within a
 * function are drawn beside its instructions.
 */
import { Rows } from "./rows.js";
import { seriesWanted } from "./shape.js";

const sourceRowHeight = 18, mostLanes = 8;

// ---- jumps ----

/*
 * Each jump has a lane from its instruction to its target; the shortest are nearest to the code. Returns a text for
 * each row. Jumps that find no lane are dropped.
 */
export function jumpArrows(targets) {
  const jumps = targets.map((to, from) => [from, to]).filter(([from, to]) => to >= 0 && to !== from);
  jumps.sort((a, b) => Math.abs(a[0] - a[1]) - Math.abs(b[0] - b[1]) || a[0] - b[0]);
  const lanes = [], placed = [];
  for (const [from, to] of jumps) {
    const first = Math.min(from, to), last = Math.max(from, to);
    // Jumps to the same target may share a lane.
    const isFree = lane => lane.every(other => other.last < first || other.first > last || other.to === to);
    let at = lanes.findIndex(isFree);
    if (at < 0 && lanes.length < mostLanes) at = lanes.push([]) - 1;
    if (at < 0) continue;
    lanes[at].push({first, last, to});
    placed.push({from, to, first, last, at});
  }
  const width = lanes.length ? lanes.length + 2 : 0, rows = targets.map(() => new Array(width).fill(" "));
  const column = at => lanes.length - 1 - at;
  for (const {first, last, at} of placed) for (let row = first + 1; row < last; row++) rows[row][column(at)] = "│";
  for (const {from, to, first, last, at} of placed)
    for (const row of [from, to]) {
      const here = column(at), known = rows[row][here], corner = row === first ? "╭" : row === last ? "╰" : "├";
      rows[row][here] = known === " " || known === corner ? corner : "├";
      for (let k = here + 1; k < width; k++) if (rows[row][k] === " ") rows[row][k] = k === width - 1 && row === to ? "▸" : "─"; else if (rows[row][k] === "│") rows[row][k] = "┼";
      if (row === to) rows[row][width - 1] = "▸";
    }
  return rows.map(row => row.join(""));
}

// ---- the view ----

export class Source {
  constructor(section, model, events) {
    Object.assign(this, {model, events, about: model.about.source, name: "", byName: new Map()});
    this.panes = ["lines", "code"].map(id => {
      const pane = {box: section.querySelector("#source-" + id), rows: [], count: 0};
      pane.list = new Rows(pane.box, sourceRowHeight, index => this.row(pane.rows[index], index));
      pane.box.setAttribute("role", "table");
      return pane;
    });
    for (const [name, lines, codes] of this.about ? this.about.functions : []) this.byName.set(name, {lines, codes});
  }

  get isEmpty() {
    return !this.about;
  }

  has(name) {
    return this.byName.has(name);
  }

  // Functions by cost; those with source first.
  names(rows) {
    const hasLines = row => this.byName.get(row.name).lines.length > 0;
    return rows.filter(row => this.has(row.name)).sort((a, b) => hasLines(b) - hasLines(a) || b.self - a.self || b.total - a.total).map(row => row.name);
  }

  show(name, choice) {
    const found = this.byName.get(name) || {lines: [], codes: []}, wanted = seriesWanted(this.model, choice), bySamples = choice.weight === "samples";
    const {cells} = this.model, amounts = bySamples ? cells.samples : cells.weight;
    const counts = number => wanted[number] && !this.model.series[number].before;
    this.name = name;
    this.whole = 0;
    for (let i = 0; i < cells.count; i++) if (counts(cells.series[i])) this.whole += amounts[i];
    this.sum = (costs, step, at) => {
      let sum = 0;
      for (let i = 0; i < costs.length; i += step) if (counts(costs[i])) sum += costs[i + at];
      return sum;
    };
    this.fill(this.panes[0], this.lineRows(found.lines, bySamples), "Source lines are not in this page: they were not found, or the profile was saved without --source.");
    this.fill(this.panes[1], this.codeRows(found.codes, bySamples), "Machine code is not in this page: nothing was spent in the function itself, or the profile was saved without --code.");
  }

  fill(pane, rows, nothing) {
    pane.rows = rows.length ? rows : [{kind: "nothing", text: nothing}];
    pane.count = rows.length;
    pane.list.show(pane.rows.length);
    // Scroll to the costliest row.
    let best = 0;
    pane.rows.forEach((row, i) => {
      if ((row.self || 0) > (pane.rows[best].self || 0)) best = i;
    });
    pane.box.scrollTop = Math.max(0, best * sourceRowHeight - pane.box.clientHeight / 2);
    pane.list.draw();
  }

  lineRows(lines, bySamples) {
    const rows = [], byFile = new Map(), more = bySamples ? 2 : 0;
    for (const [file, line, costs] of lines) {
      if (!byFile.has(file)) byFile.set(file, new Map());
      byFile.get(file).set(line, {self: this.sum(costs, 5, 1 + more), total: this.sum(costs, 5, 2 + more)});
    }
    for (const [file, hits] of byFile) {
      const [name, stretches] = this.about.files[file], near = 8, numbers = [...hits.keys()];
      rows.push({kind: "head", text: name});
      const texts = new Map();
      for (const [first, text] of stretches) text.replace(/\n$/, "").split("\n").forEach((line, i) => texts.set(first + i, line));
      const shown = texts.size ? [...texts.keys()].filter(number => numbers.some(hit => Math.abs(hit - number) <= near)) : numbers;
      let last = 0;
      for (const number of shown) {
        if (last && number !== last + 1) rows.push({kind: "gap", text: "⋯"});
        rows.push({kind: "line", place: number, text: texts.get(number) || "", ...hits.get(number)});
        last = number;
      }
    }
    return rows;
  }

  codeRows(codes, bySamples) {
    const rows = [];
    for (const [object, list] of codes) {
      rows.push({kind: "head", text: object});
      const arrows = jumpArrows(list.map(([, , target]) => target));
      list.forEach(([address, text, target, costs], i) => rows.push({kind: "code", place: address, text, arrows: arrows[i], self: this.sum(costs, 3, bySamples ? 2 : 1),
                                                                     jumps: target >= 0 ? list[target][0] : ""}));
    }
    return rows;
  }

  row(data, index) {
    const row = document.createElement("div"), share = value => value ? (100 * value / (this.whole || 1)).toFixed(2) + "%" : "";
    const cell = (text, kind) => {
      const one = row.appendChild(document.createElement("span"));
      Object.assign(one, {className: kind, textContent: text});
      one.setAttribute("role", "cell");
      return one;
    };
    row.className = "source-row " + data.kind;
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", index + 1);
    if (data.kind === "line" || data.kind === "code") {
      cell(share(data.self), "number").title = data.self ? `${this.events.amount(data.self)} spent here itself` : "";
      if (data.kind === "line") cell(share(data.total), "number").title = data.total ? `${this.events.amount(data.total)} spent here and in what it calls` : "";
      cell(data.place, "place");
      if (data.arrows) cell(data.arrows, "arrows").setAttribute("aria-hidden", "true");
      if (data.jumps) row.title = "jumps to " + data.jumps;
      row.style.setProperty("--heat", Math.min(1, (data.self || 0) / (this.whole || 1) * 4).toFixed(3));
    }
    const text = cell(data.text, "text");
    if (data.kind === "head") text.title = data.text;
    return row;
  }
}
