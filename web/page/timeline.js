/*
 * Time: a lane for each thread that shows when it ran, and the flame chart of one thread. Drag across the lanes to
 * choose a range of time, which every other view then follows.
 *
 * For allocations, a lane shows the bytes that were alive: what the thread had allocated by then, minus what was
 * freed of it.
 */
import { isOfTime, passing, threadKey } from "./shape.js";

const laneHeight = 20, axisHeight = 16;
// As #chart's margin in page.css.
const labelWidth = () => innerWidth < 700 ? 130 : 190;

// The shape of a thread over time: adjacent samples that share a caller share its frame. `left` and `size` are
// nanoseconds.
export function chartShape(model, list, from, to, usual) {
  const s = model.samples, frames = [], open = [];
  const close = (depth, time) => {
    while (open.length > depth) {
      const f = open.pop();
      f.until = time;
      f.end = frames.length;
    }
  };
  const ancestors = [];
  let until = from;
  for (let i = 0; i < list.length; i++) {
    const start = s.time[list[i]], waits = model.series[s.series[list[i]]].waits;
    const next = i + 1 < list.length ? s.time[list[i + 1]] : Infinity;
    const ended = until;
    if (start > ended + usual) close(0, ended); // less is jitter
    // A wait lasts its weight; a running sample lasts until the next one, unless the thread was not seen for a while.
    until = Math.min(next, waits ? start + s.weight[list[i]] : next < Infinity ? start + 2 * usual : start + usual);
    ancestors.length = 0;
    for (let n = s.node[list[i]]; n > 0; n = model.parent[n]) ancestors.push(n);
    let shared = 0;
    while (shared < open.length && shared < ancestors.length && open[shared].node === ancestors[ancestors.length - 1 - shared]) shared++;
    close(shared, Math.min(start, ended));
    for (; shared < ancestors.length; shared++) {
      const f = {node: ancestors[ancestors.length - 1 - shared], start, depth: shared + 1, parent: open.length ? open[open.length - 1].id : 0};
      f.id = frames.push(f);
      open.push(f);
    }
  }
  close(0, until);
  return asShape(model, frames, from, to);
}

function asShape(model, frames, from, to) {
  const count = frames.length + 1;
  const shape = {count, parent: new Int32Array(count), place: new Int32Array(count), depth: new Int32Array(count), end: new Int32Array(count),
                 left: new Float64Array(count), size: new Float64Array(count), self: new Float64Array(count), total: new Float64Array(count)};
  shape.parent[0] = shape.place[0] = -1;
  shape.end[0] = count;
  shape.size[0] = shape.total[0] = to - from;
  for (const f of frames) {
    shape.parent[f.id] = f.parent;
    shape.place[f.id] = model.place[f.node];
    shape.depth[f.id] = f.depth;
    shape.end[f.id] = f.end + 1;
    shape.left[f.id] = f.start - from;
    shape.size[f.id] = shape.total[f.id] = f.until - f.start;
  }
  return shape;
}

export class Timeline {
  constructor(canvas, model, events) {
    Object.assign(this, {canvas, model, events, chosen: 0, range: null, drag: null, cursor: null, anchor: null, all: [], threads: [], times: null, filter: "", order: "cpu"});
    const has = event => model.series.some(one => one.event === event);
    this.grows = has("allocated") && has("freed");
    this.space = canvas.parentNode;
    this.box = this.space.parentNode;
    this.box.addEventListener("scroll", () => this.draw());
    const s = model.samples;
    this.last = 1;
    for (let i = 0; i < s.count; i++) this.last = Math.max(this.last, s.time[i] + (model.series[s.series[i]].waits ? s.weight[i] : 0));
    this.context = canvas.getContext("2d");
    new ResizeObserver(() => this.draw()).observe(canvas);
    canvas.addEventListener("pointerdown", event => event.isPrimary && this.grab(event)); // a mouse, a pen or a finger
    canvas.addEventListener("keydown", event => this.key(event));
    canvas.addEventListener("blur", () => Object.assign(this, {cursor: null, anchor: null}).draw());
  }

  get isEmpty() {
    return !this.model.samples.count;
  }

  // The samples of the chosen time, by thread; the chosen thread stays the same.
  choose(choice) {
    const chosen = JSON.stringify([choice.times, ...this.grows ? [choice.event, choice.focus, choice.rules.focus] : []]);
    if (this.times === chosen) return this.follow(choice.thread);
    const {series, samples} = this.model, threads = new Map(), through = this.grows && passing(this.model, choice);
    const keys = series.map(one => isOfTime(one, choice) && (threadKey(one) || "(no thread)"));
    const threadOf = (key, isAll) => threads.get(key) || threads.set(key, {name: key, list: [], changes: [], ran: 0, isAll}).get(key);
    this.times = chosen;
    for (let i = 0; i < samples.count; i++) {
      const one = series[samples.series[i]], key = keys[samples.series[i]];
      if (!key || (through && !through[samples.node[i]])) continue;
      const lanes = this.grows ? [threadOf("all threads", true), threadOf(key)] : [threadOf(key)];
      for (const lane of lanes) {
        if (this.grows && ["allocated", "freed"].includes(one.event)) lane.changes.push(i);
        if (this.grows && choice.event && one.event !== choice.event) continue;
        lane.list.push(i);
        if (!one.waits) lane.ran += samples.weight[i];
      }
    }
    this.all = [...threads.values()];
    this.arrange(this.filter, this.order);
    this.hasWaits = series.some(one => one.waits && isOfTime(one, choice));
    this.follow(choice.thread);
  }

  // Go to the thread that was chosen for all views, once: its lane may be left again.
  follow(name) {
    const lane = name === this.followed ? -1 : this.threads.findIndex(thread => thread.name === name);
    this.followed = name;
    if (lane < 0) return;
    this.chosen = lane;
    this.intoSight();
    this.draw();
  }

  // The lanes that pass the filter, in order; the chosen thread stays the same.
  arrange(filter, order) {
    const before = this.threads[this.chosen], text = filter.toLowerCase();
    const value = {cpu: thread => -thread.ran, start: thread => thread.list[0], name: () => 0}[order];
    Object.assign(this, {filter, order});
    this.threads = this.all.filter(thread => !text || thread.name.toLowerCase().includes(text));
    this.threads.sort((a, b) => !!b.isAll - !!a.isAll || value(a) - value(b) || (order === "cpu" ? b.list.length - a.list.length : 0) || (a.name < b.name ? -1 : 1));
    this.chosen = Math.max(0, this.threads.findIndex(thread => before && thread.name === before.name));
    this.intoSight();
    this.draw();
  }

  // The number of lanes that fit.
  get lanes() {
    const room = this.box.parentNode.clientHeight * 0.4;
    return Math.max(2, Math.min(this.threads.length, Math.floor((room - axisHeight) / laneHeight)));
  }

  intoSight() {
    const top = this.chosen * laneHeight, rest = (this.lanes - 1) * laneHeight;
    this.space.style.height = this.threads.length * laneHeight + axisHeight + "px";
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top > this.box.scrollTop + rest) this.box.scrollTop = top - rest;
  }

  // The usual time between two samples of a thread: a gap longer than twice that means it did not run.
  usual(list) {
    const gaps = [];
    for (let i = 1; i < list.length; i += Math.ceil(list.length / 2000)) gaps.push(this.model.samples.time[list[i]] - this.model.samples.time[list[i - 1]]);
    return gaps.sort((a, b) => a - b)[gaps.length >> 1] || 1e6;
  }

  chart() {
    const thread = this.threads[this.chosen] || {list: []}, [from, to] = this.range || [0, this.last];
    const list = thread.list.filter(i => this.model.samples.time[i] >= from && this.model.samples.time[i] <= to);
    return chartShape(this.model, list, from, to, this.usual(thread.list));
  }

  // The visible range: the chosen one, or everything.
  get span() {
    return this.range || [0, this.last];
  }

  x(time, width) {
    const [from, to] = this.span;
    return labelWidth() + (time - from) / (to - from) * (width - labelWidth());
  }

  draw() {
    const ratio = devicePixelRatio || 1, c = this.context, lanes = this.lanes;
    const width = this.box.clientWidth, height = lanes * laneHeight + axisHeight;
    if (!width) return;
    this.box.style.height = this.canvas.style.height = height + "px";
    this.space.style.height = Math.max(lanes, this.threads.length) * laneHeight + axisHeight + "px";
    Object.assign(this.canvas, {width: Math.round(width * ratio), height: Math.round(height * ratio)});
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.first = Math.max(0, Math.min(Math.round(this.box.scrollTop / laneHeight), this.threads.length - lanes));
    const style = getComputedStyle(this.canvas);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (let row = 0; row < lanes && this.first + row < this.threads.length; row++)
      this.drawLane(this.threads[this.first + row], row, width, style, this.first + row === this.chosen);
    this.drawAxis(width, height, style);
    this.drawMarks(width, height, style);
  }

  // The range that is being chosen, by dragging or between the two keyboard positions.
  drawMarks(width, height, style) {
    const c = this.context, marked = this.drag || this.marked;
    if (marked) {
      const [a, b] = marked.map(t => this.x(t, width));
      c.fillStyle = "rgba(37,99,235,.22)";
      c.fillRect(a, 0, Math.max(1, b - a), height);
    }
    if (this.cursor === null) return;
    c.fillStyle = style.getPropertyValue("--accent");
    c.fillRect(Math.min(width - 2, this.x(this.cursor, width)), 0, 2, height);
  }

  // From the anchor to the cursor, in order; null without an anchor.
  get marked() {
    return this.anchor === null ? null : [Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)];
  }

  // Round numbers of seconds, a hundred pixels apart or more.
  drawAxis(width, height, style) {
    const c = this.context, [from, to] = this.span, wanted = (to - from) * 100 / Math.max(1, width - labelWidth());
    let step = 10 ** Math.floor(Math.log10(wanted));
    while (step < wanted) step *= step * 2 >= wanted ? 2 : step * 5 >= wanted ? 5 : 10;
    const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(step))));
    c.fillStyle = style.getPropertyValue("--soft");
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = this.x(time, width);
      c.fillRect(x, height - axisHeight, 1, 4);
      const label = `${(time / 1e9).toFixed(digits)} s`;
      if (x + 3 + c.measureText(label).width <= width) c.fillText(label, x + 3, height - axisHeight / 2 + 1);
    }
  }

  // A thread's live bytes at the end of each of `columns` equal parts of the visible range; `peak` is the maximum
  // within it.
  growth(thread, columns) {
    const s = this.model.samples, [from, to] = this.span, alive = new Float64Array(columns);
    let sum = 0, peak = 0, next = 0;
    for (let k = 0; k < columns; k++) {
      const end = k + 1 < columns ? from + (to - from) * (k + 1) / columns : to;
      for (; next < thread.changes.length && s.time[thread.changes[next]] <= end; next++) {
        const i = thread.changes[next];
        sum += this.model.series[s.series[i]].event === "freed" ? -s.weight[i] : s.weight[i];
        if (s.time[i] >= from) peak = Math.max(peak, sum);
      }
      alive[k] = sum;
    }
    return {alive, peak: Math.max(peak, ...alive.subarray(0, 1))};
  }

  drawGrowth(thread, y, width, style) {
    const c = this.context, columns = Math.max(1, Math.floor((width - labelWidth()) / 2)), {alive, peak} = this.growth(thread, columns);
    const [size, unit] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([least]) => peak >= least) || [1, "B"];
    c.fillStyle = "#8fb0f5";
    alive.forEach((sum, k) => sum > 0 && c.fillRect(labelWidth() + 2 * k, y + (laneHeight - 2) * (1 - sum / peak), 2, (laneHeight - 2) * sum / peak));
    c.fillStyle = style.color;
    c.fillText(`at most ${(peak / size).toFixed(size > 1 ? 2 : 0)} ${unit}`, labelWidth() + 4, y + laneHeight / 2 - 1);
  }

  fit(text, width) {
    if (this.context.measureText(text).width <= width) return text;
    const letters = [...text];
    while (letters.length && this.context.measureText(letters.join("") + "…").width > width) letters.pop();
    return letters.join("") + "…";
  }

  drawLane(thread, row, width, style, chosen) {
    const c = this.context, y = row * laneHeight, s = this.model.samples;
    const columns = Math.max(1, Math.floor((width - labelWidth()) / 2)), bins = new Float64Array(columns);
    c.fillStyle = style.getPropertyValue("--panel");
    c.fillRect(labelWidth(), y, width - labelWidth(), laneHeight - 2);
    if (this.grows) this.drawGrowth(thread, y, width, style);
    c.fillStyle = "#8fb0f5";
    const [from, to] = this.span, right = width;
    for (const i of this.grows ? [] : thread.list) {
      const time = s.time[i], waits = this.model.series[s.series[i]].waits;
      if (time > to || time + (waits ? s.weight[i] : 0) < from) continue;
      if (!waits) bins[Math.min(columns - 1, Math.floor((time - from) / (to - from) * columns))]++;
      else {
        const left = Math.max(labelWidth(), this.x(time, width)), end = Math.min(right, this.x(time + s.weight[i], width));
        c.fillRect(left, y + (laneHeight - 2) / 2, Math.max(0.5, end - left), (laneHeight - 2) / 2);
      }
    }
    const most = bins.reduce((a, b) => Math.max(a, b), 1);
    c.fillStyle = "#f28c38";
    bins.forEach((n, k) => n && c.fillRect(labelWidth() + 2 * k, y + (laneHeight - 2) * (1 - n / most), 2, (laneHeight - 2) * n / most));
    c.fillStyle = chosen ? style.getPropertyValue("--accent") : style.color;
    c.fillText(this.fit((chosen ? "▸ " : "") + thread.name, labelWidth() - 6), 0, y + laneHeight / 2 - 1);
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.span, time = from + (event.clientX - box.left - labelWidth()) / (box.width - labelWidth()) * (to - from);
    return {time: Math.min(Math.max(from, time), to), lane: this.first + Math.floor((event.clientY - box.top) / laneHeight)};
  }

  grab(event) {
    const start = this.place(event);
    const move = e => {
      const now = this.place(e).time;
      this.drag = [Math.min(start.time, now), Math.max(start.time, now)];
      this.draw();
    };
    const stop = e => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", stop);
      removeEventListener("pointercancel", stop);
      const range = e.type === "pointercancel" ? null : this.drag;
      this.drag = null;
      this.pick(start.lane);
      if (range && range[1] - range[0] > (this.span[1] - this.span[0]) / 500) this.setRange(range);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
    addEventListener("pointercancel", stop);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = {ArrowDown: 1, ArrowUp: -1, PageDown: this.lanes, PageUp: -this.lanes, Home: -Infinity, End: Infinity}[event.key];
    const along = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (step) this.pick(Math.max(0, Math.min(this.threads.length - 1, this.chosen + step)));
    else if (along) this.moveCursor(along * (event.shiftKey ? 10 : 1));
    else if (event.key === "Enter" || event.key === " ") this.mark();
    else if (event.key === "Escape" && this.anchor !== null) this.moveCursor(0, null);
    else if (event.key === "Escape" && this.range) this.setRange(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // In steps of a hundredth of the visible range. The first step starts at the left.
  moveCursor(steps, anchor = this.anchor) {
    const [from, to] = this.span, at = this.cursor === null || this.cursor < from || this.cursor > to ? from : this.cursor;
    Object.assign(this, {cursor: Math.min(to, Math.max(from, at + steps * (to - from) / 100)), anchor});
    const seconds = time => `${(time / 1e9).toFixed(3)} s`;
    this.draw();
    this.events.tell(this.marked ? `${this.marked.map(seconds).join(" to ")}: Enter chooses this range` : `${seconds(this.cursor)}: Enter begins a range here`);
  }

  // Set the start of a range, then its end.
  mark() {
    const range = this.marked;
    if (!range) return this.moveCursor(0, this.cursor === null ? this.span[0] : this.cursor);
    Object.assign(this, {cursor: null, anchor: null});
    if (range[1] > range[0]) this.setRange(range);
    else this.draw();
  }

  pick(lane) {
    if (lane < 0 || lane >= this.threads.length) return;
    this.chosen = lane;
    this.intoSight();
    this.draw();
    this.events.chosen(this.threads[lane].name);
  }

  setRange(range) {
    this.range = range;
    this.draw();
    this.events.ranged(range);
  }
}
