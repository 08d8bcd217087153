/*
 * Samples by second and by offset within the second, like FlameScope: a column for each second, rows of 20 ms, darker
 * for more samples. Drag, click twice, or press Enter twice to choose a range of time from cell to cell, which every
 * other view then follows.
 */
import { seriesWanted } from "./shape.js";

const heatRows = 50, second = 1e9, heatAxis = 18, heatLabels = 46;
const cellTime = second / heatRows;

export class HeatMap {
  constructor(canvas, model, events) {
    Object.assign(this, {canvas, model, events, cursor: 0, anchor: -1, range: null, counts: new Float64Array(1), most: 1});
    this.box = canvas.parentNode.parentNode;
    this.space = canvas.parentNode;
    this.context = canvas.getContext("2d");
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.box.addEventListener("scroll", () => this.draw());
    canvas.addEventListener("pointerdown", event => event.isPrimary && this.grab(event)); // a mouse, a pen or a finger
    canvas.addEventListener("mousemove", event => !event.buttons && this.hover(event));
    canvas.addEventListener("keydown", event => this.key(event));
    canvas.addEventListener("focus", () => this.draw());
    canvas.addEventListener("blur", () => this.draw());
  }

  show(choice, last) {
    const s = this.model.samples, wanted = seriesWanted(this.model, choice), count = (Math.floor(last / second) + 1) * heatRows;
    this.counts = new Float64Array(count);
    for (let i = 0; i < s.count; i++) if (wanted[s.series[i]]) this.counts[Math.min(count - 1, Math.floor(s.time[i] / cellTime))]++;
    this.most = this.counts.reduce((a, b) => Math.max(a, b), 1);
    this.range = choice.time;
    this.anchor = -1;
    this.cursor = Math.min(this.cursor, count - 1);
    this.draw();
    this.tell(this.cursor);
  }

  get seconds() {
    return this.counts.length / heatRows;
  }

  // ---- drawing ----

  layOut() {
    const room = this.box.clientWidth - heatLabels;
    this.cellWidth = Math.max(6, Math.min(48, Math.floor(room / this.seconds)));
    this.cellHeight = Math.max(3, Math.min(14, Math.floor((this.box.clientHeight - heatAxis - 4) / heatRows)));
    this.space.style.width = heatLabels + this.seconds * this.cellWidth + "px";
    const width = Math.min(this.box.clientWidth, heatLabels + this.seconds * this.cellWidth + 60), height = heatRows * this.cellHeight + heatAxis, ratio = devicePixelRatio || 1;
    Object.assign(this.canvas.style, {width: width + "px", height: height + "px"});
    Object.assign(this.canvas, {width: Math.round(width * ratio), height: Math.round(height * ratio)});
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.width = width;
    this.shift = this.box.scrollLeft;
  }

  // The start is at the lower left: offsets grow upwards, as in FlameScope.
  corner(cell) {
    return [heatLabels + Math.floor(cell / heatRows) * this.cellWidth - this.shift, (heatRows - 1 - cell % heatRows) * this.cellHeight];
  }

  draw() {
    if (!this.box.clientWidth) return;
    this.layOut();
    const c = this.context, style = getComputedStyle(this.canvas), colours = {soft: style.getPropertyValue("--soft"), panel: style.getPropertyValue("--panel"), accent: style.getPropertyValue("--accent")};
    const first = Math.max(0, Math.floor(this.shift / this.cellWidth)), end = Math.min(this.seconds, Math.ceil((this.shift + this.width - heatLabels) / this.cellWidth));
    c.save();
    c.beginPath();
    c.rect(heatLabels, 0, this.width - heatLabels, heatRows * this.cellHeight + heatAxis);
    c.clip();
    for (let cell = first * heatRows; cell < end * heatRows; cell++) this.drawCell(cell, colours);
    this.drawSeconds(first, end, colours);
    this.drawMarks(colours);
    c.restore();
    c.fillStyle = colours.soft;
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (const part of [0, 0.25, 0.5, 0.75]) c.fillText(`${1000 * part} ms`, 0, Math.min((1 - part) * heatRows, heatRows - 1) * this.cellHeight - 2);
  }

  drawCell(cell, colours) {
    const c = this.context, [x, y] = this.corner(cell), n = this.counts[cell], time = cell * cellTime;
    c.fillStyle = colours.panel;
    c.fillRect(x, y, this.cellWidth - 1, this.cellHeight - 1);
    if (!n) return;
    c.globalAlpha = (0.15 + 0.85 * n / this.most) * (this.range && (time + cellTime <= this.range[0] || time > this.range[1]) ? 0.3 : 1);
    c.fillStyle = "#e0480b";
    c.fillRect(x, y, this.cellWidth - 1, this.cellHeight - 1);
    c.globalAlpha = 1;
  }

  drawSeconds(first, end, colours) {
    const c = this.context, step = [1, 2, 5, 10, 20, 50, 100].find(one => one * this.cellWidth >= 44) || 200;
    c.fillStyle = colours.soft;
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (let at = Math.ceil(first / step) * step; at < end; at += step)
      c.fillText(`${at} s`, heatLabels + at * this.cellWidth - this.shift, heatRows * this.cellHeight + heatAxis / 2);
  }

  // The anchor, and the keyboard's cursor.
  drawMarks(colours) {
    const c = this.context, marks = this.anchor >= 0 ? [this.anchor] : [];
    if (document.activeElement === this.canvas) marks.push(this.cursor);
    if (this.anchor >= 0) {
      c.fillStyle = colours.accent;
      c.globalAlpha = 0.25;
      for (let cell = Math.min(this.anchor, this.cursor); cell <= Math.max(this.anchor, this.cursor); cell++) c.fillRect(...this.corner(cell), this.cellWidth, this.cellHeight);
      c.globalAlpha = 1;
    }
    c.strokeStyle = colours.accent;
    c.lineWidth = 2;
    for (const cell of marks) {
      const [x, y] = this.corner(cell);
      c.strokeRect(x, y, this.cellWidth - 1, this.cellHeight - 1);
    }
  }

  // ---- choosing ----

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - heatLabels + this.shift) / this.cellWidth), row = heatRows - 1 - Math.floor((event.clientY - box.top) / this.cellHeight);
    return Math.max(0, Math.min(this.seconds - 1, column)) * heatRows + Math.max(0, Math.min(heatRows - 1, row));
  }

  tell(cell) {
    const from = cell * cellTime / second, n = this.counts[cell];
    this.events.tell(`${from.toFixed(2)} s to ${(from + cellTime / second).toFixed(2)} s: ${n.toLocaleString("en")} sample${n === 1 ? "" : "s"}` + (this.anchor >= 0 ? ", choose where the range ends" : ""));
  }

  hover(event) {
    if (this.anchor >= 0) this.cursor = this.at(event), this.draw();
    this.tell(this.at(event));
  }

  choose(from, to) {
    const [a, b] = [Math.min(from, to), Math.max(from, to)];
    this.anchor = -1;
    this.events.ranged([a * cellTime, (b + 1) * cellTime - 1]);
  }

  grab(event) {
    if (event.button !== 0) return;
    const start = this.at(event), waited = this.anchor;
    this.anchor = this.cursor = start;
    this.draw();
    const move = e => {
      this.cursor = this.at(e);
      this.tell(this.cursor);
      this.draw();
    };
    const stop = e => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", stop);
      removeEventListener("pointercancel", stop);
      if (e.type === "pointercancel") return Object.assign(this, {anchor: -1}).draw();
      this.cursor = this.at(e);
      if (this.cursor !== start) this.choose(start, this.cursor);
      else if (waited >= 0) this.choose(waited, start);
      else this.tell(start);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
    addEventListener("pointercancel", stop);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = {ArrowRight: heatRows, ArrowLeft: -heatRows, ArrowUp: 1, ArrowDown: -1}[event.key], last = this.counts.length - 1;
    if (step) this.cursor = this.cursor + step >= 0 && this.cursor + step <= last ? this.cursor + step : this.cursor;
    else if (event.key === "Home") this.cursor = 0;
    else if (event.key === "End") this.cursor = last;
    else if (event.key === "Enter" || event.key === " ") {
      if (this.anchor >= 0) this.choose(this.anchor, this.cursor);
      else this.anchor = this.cursor;
    } else if (event.key === "Escape" && this.anchor >= 0) this.anchor = -1;
    else return;
    event.preventDefault();
    event.stopPropagation();
    const x = Math.floor(this.cursor / heatRows) * this.cellWidth;
    if (x < this.box.scrollLeft) this.box.scrollLeft = x;
    else if (x + this.cellWidth > this.box.scrollLeft + this.box.clientWidth - heatLabels) this.box.scrollLeft = x + this.cellWidth - this.box.clientWidth + heatLabels;
    this.draw();
    this.tell(this.cursor);
  }
}
