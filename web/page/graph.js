/*
 * Draws shapes on a canvas, and finds the frame at a position. A pane is one shape and its visible part: [from, to)
 * along its width, and its scroll offset. Frames narrower than a pixel are drawn only where nothing is drawn yet. A
 * pane has the frames of each row from left to right and finds the next one to draw by binary search, so drawing
 * costs the visible pixels, however many frames there are.
 */
import { shortName } from "../names.js";

const rowHeight = 17, gap = 3;

// "was 4, 8.00%: +1.23 points, ×1.50": each share is of its own side's total.
export function changePoints(now, then, wholeNow, wholeThen) {
  const difference = 100 * (now / (wholeNow || 1) - then / (wholeThen || 1)), text = Math.abs(difference).toFixed(2);
  return (+text === 0 ? "" : difference > 0 ? "+" : "-") + text;
}
export const changeFactor = (now, then) => !now && !then ? "" : !then ? "new" : !now ? "gone" : "×" + (now / then).toFixed(now / then < 99.995 ? 2 : 0);
export function changeWords(now, then, wholeNow, wholeThen, amount) {
  const words = `was ${amount(then)}, ${(100 * then / (wholeThen || 1)).toFixed(2)}%: ${changePoints(now, then, wholeNow, wholeThen)} points`;
  return now || then ? `${words}, ${changeFactor(now, then)}` : words;
}

export function changeColour(now, then, most) {
  const change = now - then;
  if (!change || !most) return "#fafafa";
  const rest = Math.round(100 + 150 * (1 - Math.min(1, Math.abs(change) / most)));
  return change > 0 ? `rgb(255,${rest},${rest})` : `rgb(${rest},${rest},255)`;
}

// Black or white, whichever has more contrast.
const inks = new Map();
export function inkOn(colour) {
  let ink = inks.get(colour);
  if (ink) return ink;
  const channels = colour[0] === "#" ? [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16)) : colour.match(/\d+/g).map(Number);
  const [red, green, blue] = channels.map(c => c > 10 ? ((c / 255 + 0.055) / 1.055) ** 2.4 : c / 3294.6);
  inks.set(colour, ink = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff");
  return ink;
}

// Blue for waiting, the same in orange for running: see colour_of_wall in src/view/colour.c.
const warm = colour => "#" + colour.slice(5, 7) + colour.slice(3, 5) + colour.slice(1, 3);

// nodes[start[d]] … nodes[start[d + 1] - 1]: the frames at depth d, from left to right.
function rowsOf(shape) {
  let deepest = 0;
  for (let n = 0; n < shape.count; n++) if (shape.depth[n] > deepest) deepest = shape.depth[n];
  const start = new Int32Array(deepest + 2), nodes = new Int32Array(shape.count);
  for (let n = 0; n < shape.count; n++) start[shape.depth[n] + 1]++;
  for (let d = 0; d <= deepest; d++) start[d + 1] += start[d];
  const next = start.slice();
  for (let n = 0; n < shape.count; n++) nodes[next[shape.depth[n]]++] = n;
  return {start, nodes, deepest};
}

export class Graph {
  constructor(canvas, model, events) {
    Object.assign(this, {canvas, model, events, panes: [], hover: null, focus: null, found: null, shortened: new Map()});
    this.context = canvas.getContext("2d");
    this.asked = this.isWaiting = false;
    this.drawn = 0;
    new ResizeObserver(() => this.draw()).observe(canvas);
    canvas.addEventListener("mousemove", event => this.move(event));
    canvas.addEventListener("mouseleave", () => this.setHover(null));
    canvas.addEventListener("pointerdown", event => event.isPrimary && this.grab(event)); // a mouse, a pen or a finger
    canvas.addEventListener("click", event => this.click(event));
    canvas.addEventListener("wheel", event => this.wheel(event), {passive: false});
    canvas.addEventListener("contextmenu", event => {
      const hit = this.at(event);
      if (!hit) return;
      event.preventDefault();
      this.setFocus(hit);
      events.menu(hit, event.clientX, event.clientY);
    });
    canvas.addEventListener("keydown", event => this.key(event));
  }

  // panes: {shape, inverted, skip: rows from the root that are not drawn}
  show(panes) {
    this.panes = panes.map(pane => ({skip: 0, scroll: 0, zoomed: 0, from: 0, to: pane.shape.size[0] || 1, ...pane}));
    for (const pane of this.panes) {
      const s = pane.shape;
      pane.most = 0;
      if (s.before) for (let n = 1; n < s.count; n++) pane.most = Math.max(pane.most, Math.abs(s.total[n] - s.before[n]));
      pane.rows = rowsOf(s);
      pane.deepest = pane.rows.deepest;
    }
    this.hover = null;
    this.focus = this.panes.length ? {pane: this.panes[this.panes.length - 1], node: 0} : null;
    this.draw();
  }

  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.paint();
    });
  }

  layOut() {
    const box = this.canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    const wide = Math.round(box.width * ratio), high = Math.round(box.height * ratio);
    if (this.canvas.width !== wide || this.canvas.height !== high) Object.assign(this.canvas, {width: wide, height: high});
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    // A pane gets the height that it needs, or its share.
    const needs = this.panes.map(pane => (pane.deepest + 1 - pane.skip) * rowHeight);
    let top = 0;
    this.panes.forEach((pane, i) => {
      const share = this.panes.length === 1 ? this.height :
        i === 0 ? Math.min(needs[0], Math.max(this.height / 2, this.height - needs[1])) : this.height - top;
      Object.assign(pane, {top, height: Math.max(0, share)});
      top += share;
      pane.reach = Math.max(0, needs[i] - pane.height);
      pane.scroll = Math.min(Math.max(0, pane.scroll), pane.reach);
    });
  }

  y(pane, depth) {
    const row = depth - pane.skip;
    return pane.inverted ? pane.top + row * rowHeight - pane.scroll : pane.top + pane.height - (row + 1) * rowHeight + pane.scroll;
  }

  paint() {
    this.layOut();
    const c = this.context, style = getComputedStyle(this.canvas);
    c.clearRect(0, 0, this.width, this.height);
    c.font = "12px monospace";
    c.textBaseline = "middle";
    this.letter = c.measureText("M").width;
    this.ink = style.color;
    this.faint = matchMedia("(prefers-color-scheme: dark)").matches ? 0.3 : 0.45; // background that makes a dimmed frame's label readable
    this.drawn = this.looked = 0; // frames drawn, and frames examined
    for (const pane of this.panes) this.paintPane(pane);
    for (const [mark, colour, thick] of [[this.hover, this.ink, 1], [this.focus, style.getPropertyValue("--accent"), 2]])
      if (mark && (mark !== this.focus || document.activeElement === this.canvas)) this.outline(mark, colour, thick);
  }

  // The first frame of a row, from index `at` on, that ends at or after `place`.
  ending(pane, at, stop, place) {
    const {left, size} = pane.shape, nodes = pane.rows.nodes;
    for (let step = 1; at < stop; step *= 2) { // try neighbours first
      const probe = Math.min(at + step, stop) - 1, n = nodes[probe];
      this.looked++;
      if (left[n] + size[n] >= place) {
        stop = probe;
        break;
      }
      at = probe + 1;
    }
    while (at < stop) {
      const middle = (at + stop) >> 1, n = nodes[middle];
      this.looked++;
      if (left[n] + size[n] >= place) stop = middle;
      else at = middle + 1;
    }
    return at;
  }

  paintPane(pane) {
    const c = this.context, first = Math.floor(pane.scroll / rowHeight), last = Math.ceil((pane.scroll + pane.height) / rowHeight);
    c.save();
    c.beginPath();
    c.rect(0, pane.top, this.width, pane.height);
    c.clip();
    for (let depth = first + pane.skip; depth < last + pane.skip && depth <= pane.deepest; depth++) this.paintRow(pane, depth);
    c.restore();
  }

  paintRow(pane, depth) {
    const s = pane.shape, {start, nodes} = pane.rows, stop = start[depth + 1], y = this.y(pane, depth);
    const scale = this.width / (pane.to - pane.from), least = 1;
    let reached = 0;
    for (let at = start[depth]; (at = this.ending(pane, at, stop, pane.from + (reached + least) / scale)) < stop; at++) {
      const n = nodes[at], x = Math.max(0, (s.left[n] - pane.from) * scale);
      if (x >= this.width) break;
      const right = (s.left[n] + s.size[n] - pane.from) * scale;
      if (s.size[n]) this.paintFrame(pane, n, x, y, Math.min(right, this.width) - x);
      reached = Math.max(right, x + least);
    }
  }

  paintFrame(pane, n, x, y, width) {
    const c = this.context, isFound = this.found && n && this.found[this.model.functionOf[pane.shape.place[n]]];
    const dimmed = pane.zoomed && n < pane.zoomed && pane.shape.end[n] > pane.zoomed;
    const colour = isFound ? "#e600e6" : this.colour(pane, n);
    c.globalAlpha = dimmed ? this.faint : 1;
    c.fillStyle = colour;
    if (width > 3) c.fillRect(x, y, width - 0.6, rowHeight - 1);
    else c.fillRect(Math.floor(x), y, Math.max(1, Math.round(width)), rowHeight - 1); // whole pixels: partial ones look pale
    if (pane.shape.before && width > 3) { // unchanged frames are as light as the page
      c.strokeStyle = "#8888";
      c.lineWidth = 0.6;
      c.strokeRect(x + 0.3, y + 0.3, width - 1.2, rowHeight - 1.6);
    }
    c.globalAlpha = 1;
    this.drawn++;
    const room = Math.floor((width - 2 * gap) / this.letter);
    if (room < 3) return;
    c.fillStyle = dimmed ? this.ink : inkOn(colour);
    const name = this.name(pane, n);
    let label = name.length <= room ? name : this.short(name, room);
    if (/[^ -~]/.test(label)) label = this.squeeze(label, width - 2 * gap);
    c.direction = "ltr";
    c.fillText(label, x + gap, y + rowHeight / 2);
  }

  // A long name is shortened once for each width, not for each drawing.
  short(name, room) {
    const key = room + name;
    if (this.shortened.size > 20000) this.shortened.clear();
    if (!this.shortened.has(key)) this.shortened.set(key, shortName(name, room));
    return this.shortened.get(key);
  }

  squeeze(label, width) {
    let letters = [...label];
    while (letters.length && this.context.measureText(letters.join("")).width > width) letters.pop();
    return letters.join("");
  }

  colour(pane, n) {
    if (pane.shape.before) return changeColour(pane.shape.total[n], pane.shape.before[n], pane.most);
    if (!n) return "#e2ded8";
    const place = this.model.places[pane.shape.place[n]];
    if (pane.shape.waits) return pane.shape.waits[n] > pane.shape.total[n] / 2 ? place.waiting : warm(place.waiting);
    return this.isWaiting ? place.waiting : place.colour;
  }

  name(pane, n) {
    return n ? this.model.places[pane.shape.place[n]].name : "all";
  }

  outline({pane, node}, colour, thick) {
    const s = pane.shape, scale = this.width / (pane.to - pane.from), c = this.context;
    const x = Math.max(0, (s.left[node] - pane.from) * scale), right = Math.min(this.width, (s.left[node] + s.size[node] - pane.from) * scale);
    if (right < 0 || x > this.width || s.depth[node] < pane.skip) return;
    c.strokeStyle = colour;
    c.lineWidth = thick;
    c.strokeRect(x + 0.5, this.y(pane, s.depth[node]) + 0.5, Math.max(1, right - x - 1), rowHeight - 2);
  }

  // ---- what is where ----

  at(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const pane = this.panes.find(p => y >= p.top && y < p.top + p.height);
    if (!pane) return null;
    const row = pane.inverted ? (y - pane.top + pane.scroll) / rowHeight : (pane.top + pane.height + pane.scroll - y) / rowHeight;
    const place = pane.from + x / this.width * (pane.to - pane.from);
    return this.find(pane, Math.floor(row) + pane.skip, place);
  }

  find(pane, depth, place) {
    if (depth < pane.skip || depth > pane.deepest) return null;
    const s = pane.shape, {start, nodes} = pane.rows;
    let at = start[depth], stop = start[depth + 1];
    while (at < stop) {
      const middle = (at + stop) >> 1, n = nodes[middle];
      if (place >= s.left[n] + s.size[n]) at = middle + 1;
      else stop = middle;
    }
    const node = nodes[at];
    return at < start[depth + 1] && place >= s.left[node] ? {pane, node} : null;
  }

  stack({pane, node}) {
    const names = [];
    for (let n = node; n > 0; n = pane.shape.parent[n]) names.unshift(this.name(pane, n));
    return names;
  }

  // ---- moving ----

  setHover(hit) {
    if (hit && this.hover && hit.pane === this.hover.pane && hit.node === this.hover.node) return;
    this.hover = hit;
    this.canvas.style.cursor = hit ? "pointer" : "default";
    this.events.tell(hit || this.focus);
    this.draw();
  }

  setFocus(hit) {
    this.focus = hit;
    this.intoSight(hit);
    this.events.tell(hit);
    this.draw();
  }

  intoSight({pane, node}) {
    const row = pane.shape.depth[node] - pane.skip;
    const near = row * rowHeight, far = near + rowHeight;
    if (near < pane.scroll) pane.scroll = near;
    else if (far > pane.scroll + pane.height) pane.scroll = far - pane.height;
  }

  zoom(hit, remember = true) {
    const {pane, node} = hit, s = pane.shape;
    Object.assign(pane, {zoomed: node, from: s.left[node], to: s.left[node] + (s.size[node] || 1)});
    this.focus = hit;
    this.events.zoomed(hit, remember);
    this.draw();
  }

  reset() {
    for (const pane of this.panes) this.zoom({pane, node: 0});
  }

  // A moved view is zoomed to the smallest frame that spans everything visible.
  settle(pane) {
    const s = pane.shape, whole = s.size[0] || 1;
    const width = Math.min(whole, Math.max(whole / 1e7, pane.to - pane.from));
    pane.from = Math.min(Math.max(0, pane.from), whole - width);
    pane.to = pane.from + width;
    let n = 0;
    for (let depth = 1, hit; (hit = this.find(pane, Math.max(depth, pane.skip), pane.from + width * 1e-9)); depth++) {
      if (s.left[hit.node] + s.size[hit.node] < pane.to - width * 1e-9) break;
      n = hit.node;
    }
    pane.zoomed = n;
    this.events.zoomed({pane, node: n}, false);
    this.draw();
  }

  grab(event) {
    if (event.button !== 0) return;
    const hit = this.at(event), pane = hit ? hit.pane : this.panes[0];
    if (!pane) return;
    const start = {x: event.clientX, y: event.clientY, from: pane.from, to: pane.to, scroll: pane.scroll};
    this.dragged = false;
    const move = e => {
      const dx = e.clientX - start.x, dy = e.clientY - start.y;
      if (!this.dragged && Math.hypot(dx, dy) < 4) return;
      this.dragged = true;
      const shift = dx / this.width * (start.to - start.from);
      pane.from = start.from - shift;
      pane.to = start.to - shift;
      pane.scroll = start.scroll + (pane.inverted ? -dy : dy);
      this.settle(pane);
    };
    const stop = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", stop);
      removeEventListener("pointercancel", stop);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
    addEventListener("pointercancel", stop);
  }

  click(event) {
    const hit = !this.dragged && this.at(event);
    if (hit) this.zoom(hit);
  }

  move(event) {
    if (!event.buttons) this.setHover(this.at(event));
  }

  wheel(event) {
    const box = this.canvas.getBoundingClientRect(), y = event.clientY - box.top;
    const pane = this.panes.find(p => y >= p.top && y < p.top + p.height);
    if (!pane) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) {
      const place = (event.clientX - box.left) / this.width, times = Math.exp(event.deltaY * 0.002);
      const centre = pane.from + place * (pane.to - pane.from);
      pane.from = centre - (centre - pane.from) * times;
      pane.to = centre + (pane.to - centre) * times;
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const shift = (event.deltaX || event.deltaY) / this.width * (pane.to - pane.from);
      pane.from += shift;
      pane.to += shift;
    } else {
      pane.scroll += pane.inverted ? event.deltaY : -event.deltaY;
    }
    this.settle(pane);
  }

  // ---- keyboard ----

  key(event) {
    if (!this.focus || event.altKey || event.ctrlKey || event.metaKey) return;
    const {pane, node} = this.focus, s = pane.shape;
    const seen = n => s.size[n] * this.width >= 0.6 * (pane.to - pane.from) && s.left[n] + s.size[n] > pane.from && s.left[n] < pane.to;
    const outward = pane.inverted ? "ArrowDown" : "ArrowUp", inward = pane.inverted ? "ArrowUp" : "ArrowDown";
    let to = node;
    if (event.key === outward) {
      for (let k = node + 1; k < s.end[node]; k = s.end[k]) if (seen(k) && (to === node || s.size[k] > s.size[to])) to = k;
    } else if (event.key === inward) {
      to = Math.max(0, s.parent[node]);
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const step = event.key === "ArrowRight" ? 1 : -1;
      for (let k = node + step; k > 0 && k < s.count; k += step)
        if (s.depth[k] === s.depth[node] && seen(k)) {
          to = k;
          break;
        }
    } else if (event.key === "Home") {
      to = pane.zoomed;
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.zoom(this.focus);
      return;
    } else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) {
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      this.events.menu(this.focus, box.left + 40, box.top + Math.max(0, this.y(pane, s.depth[node])));
      return;
    } else return;
    event.preventDefault();
    this.setFocus({pane, node: to});
  }
}
