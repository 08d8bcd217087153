/*
 * Draws shapes on a canvas, and says which frame is where. A pane is one shape and the part of it in sight: [from, to) along its width,
 * and how far it is scrolled. Frames too narrow for a pixel of their own are drawn only where nothing is yet, and not looked into, so
 * a draw costs what can be seen.
 */
const rowHeight = 17, gap = 3;

export function changeColour(now, then, most) {
  const change = now - then;
  if (!change || !most) return "#fafafa";
  const rest = Math.round(100 + 150 * (1 - Math.min(1, Math.abs(change) / most)));
  return change > 0 ? `rgb(255,${rest},${rest})` : `rgb(${rest},${rest},255)`;
}

export class Graph {
  constructor(canvas, model, events) {
    Object.assign(this, {canvas, model, events, panes: [], hover: null, focus: null, found: null});
    this.context = canvas.getContext("2d");
    this.waiting = false;
    this.drawn = 0;
    new ResizeObserver(() => this.draw()).observe(canvas);
    canvas.addEventListener("mousemove", event => this.move(event));
    canvas.addEventListener("mouseleave", () => this.setHover(null));
    canvas.addEventListener("mousedown", event => this.grab(event));
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
      pane.deepest = s.depth.reduce((most, depth) => depth > most ? depth : most, 0);
    }
    this.hover = null;
    this.focus = this.panes.length ? {pane: this.panes[this.panes.length - 1], node: 0} : null;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
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
    // A pane gets what it needs, or its part.
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
    this.drawn = 0;
    for (const pane of this.panes) this.paintPane(pane);
    for (const [mark, colour, thick] of [[this.hover, this.ink, 1], [this.focus, style.getPropertyValue("--accent"), 2]])
      if (mark && (mark !== this.focus || document.activeElement === this.canvas)) this.outline(mark, colour, thick);
  }

  paintPane(pane) {
    const c = this.context, s = pane.shape, scale = this.width / (pane.to - pane.from);
    const reached = new Float64Array(pane.deepest + 2).fill(-1);
    c.save();
    c.beginPath();
    c.rect(0, pane.top, this.width, pane.height);
    c.clip();
    for (let n = 0; n < s.count;) {
      const right = (s.left[n] + s.size[n] - pane.from) * scale;
      const x = (s.left[n] - pane.from) * scale;
      if (right <= 0 || x >= this.width || right - reached[s.depth[n]] < 0.6 || !s.size[n]) {
        n = s.end[n];
        continue;
      }
      const from = Math.max(x, 0), y = this.y(pane, s.depth[n]);
      reached[s.depth[n]] = Math.max(right, from + 0.6);
      if (s.depth[n] >= pane.skip && y > pane.top - rowHeight && y < pane.top + pane.height)
        this.paintFrame(pane, n, from, y, Math.min(right, this.width) - from);
      n++;
    }
    c.restore();
  }

  paintFrame(pane, n, x, y, width) {
    const c = this.context, isFound = this.found && n && this.found[this.model.functionOf[pane.shape.place[n]]];
    const dimmed = pane.zoomed && n < pane.zoomed && pane.shape.end[n] > pane.zoomed;
    c.globalAlpha = dimmed ? 0.45 : 1;
    c.fillStyle = isFound ? "#e600e6" : this.colour(pane, n);
    c.fillRect(x, y, Math.max(0.6, width - (width > 3 ? 0.6 : 0)), rowHeight - 1);
    c.globalAlpha = 1;
    this.drawn++;
    const room = Math.floor((width - 2 * gap) / this.letter);
    if (room < 3) return;
    c.fillStyle = dimmed ? this.ink : "#000";
    const name = this.name(pane, n);
    let label = name.length <= room ? name : [...name.slice(0, 2 * room)].slice(0, room - 2).join("") + "..";
    if (/[^ -~]/.test(label)) label = this.squeeze(label, width - 2 * gap);
    c.direction = "ltr";
    c.fillText(label, x + gap, y + rowHeight / 2);
  }

  squeeze(label, width) {
    let letters = [...label];
    while (letters.length && this.context.measureText(letters.join("")).width > width) letters.pop();
    return letters.join("");
  }

  colour(pane, n) {
    if (pane.shape.before) return changeColour(pane.shape.total[n], pane.shape.before[n], pane.most);
    return n ? this.model.places[pane.shape.place[n]].colour : "#e2ded8";
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
    const s = pane.shape;
    let n = 0;
    while (s.depth[n] < depth) {
      let k = n + 1;
      while (k < s.end[n] && place >= s.left[k] + s.size[k]) k = s.end[k];
      if (k >= s.end[n] || place < s.left[k]) return null;
      n = k;
    }
    return s.depth[n] === depth && depth >= pane.skip ? {pane, node: n} : null;
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

  // The smallest frame that spans all that is in sight is what a moved view is zoomed to.
  settle(pane) {
    const s = pane.shape, whole = s.size[0] || 1;
    const width = Math.min(whole, Math.max(whole / 1e7, pane.to - pane.from));
    pane.from = Math.min(Math.max(0, pane.from), whole - width);
    pane.to = pane.from + width;
    let n = 0;
    for (let k = 1; k < s.end[n];) {
      if (s.left[k] <= pane.from + width * 1e-9 && s.left[k] + s.size[k] >= pane.to - width * 1e-9) n = k++;
      else k = s.end[k];
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
      removeEventListener("mousemove", move);
      removeEventListener("mouseup", stop);
    };
    addEventListener("mousemove", move);
    addEventListener("mouseup", stop);
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
