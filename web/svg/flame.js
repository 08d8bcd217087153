/*
 * Makes the picture a tool: zoom, search, keyboard, state in the URL, as wide as the window.
 *
 * Frames stand in the document parents first and from left to right, so that all a frame calls is one run of indexes. What the
 * frames are is read once, into arrays; a zoom then walks only what can be seen and changes only that: the rest is
 * hidden by one class on the whole. Names come from profiles: they are only ever set as text.
 */
(() => {
"use strict";
const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
const script = document.currentScript;
const svg = script ? script.ownerSVGElement : document.documentElement;
const frames = svg.getElementById("frames");
const items = [...frames.children];
const count = items.length;
if (!count) return;
const option = frames.dataset;
const margin = 10, textGap = 3, least = 0.4;
const inverted = !!option.inverted;

// ---- what the frames are ----

const rects = items.map(g => g.querySelector("rect"));
const left = new Float64Array(count), size = new Float64Array(count);
const depth = new Int32Array(count), parent = new Int32Array(count), end = new Int32Array(count);
const number = (element, name) => +element.getAttribute(name);
const rootY = number(rects[0], "y"), rowHeight = number(rects[0], "height") + 1;
{
  const open = [];
  for (let i = 0; i < count; i++) {
    left[i] = number(rects[i], "fg:x");
    size[i] = number(rects[i], "fg:w");
    depth[i] = Math.round(Math.abs(number(rects[i], "y") - rootY) / rowHeight);
    while (open.length > depth[i]) end[open.pop()] = i;
    parent[i] = open.length ? open[open.length - 1] : -1;
    open.push(i);
  }
  while (open.length) end[open.pop()] = count;
}
const total = +frames.getAttribute("total_samples");
// The counts after the name may hold " (" only if their unit does.
const brackets = option.unit.split(" (").length;
function countsAt(title) {
  let at = title.length;
  for (let k = 0; k < brackets && at > 0; k++) at = title.lastIndexOf(" (", at - 1);
  return at > 0 ? at : title.length;
}
// A long name that several frames have is in the file once. A frame's own title has it shortened until somebody looks at the frame.
const listed = svg.getElementById("names")?.children || [];
const listedName = i => listed[items[i].getAttribute("fg:n") ?? -1]?.textContent;
const names = [];
function nameOf(i) {
  if (names[i] !== undefined) return names[i];
  const title = items[i].querySelector("title").textContent;
  return names[i] = listedName(i) ?? title.slice(0, countsAt(title));
}
function titleOf(i) {
  const title = items[i].querySelector("title"), name = listedName(i);
  if (name !== undefined) {
    title.textContent = name + title.textContent.slice(countsAt(title.textContent));
    items[i].removeAttribute("fg:n");
  }
  return title.textContent;
}

// ---- drawing ----

let width = svg.viewBox.baseVal.width - 2 * margin;
let zoomed = 0, shown = [];
let rootLabels = []; // frames that have a label while nothing is zoomed
let letter = 7, fontSize = 12, monospace = true;
const percent = (part, whole) => +(100 * part / whole).toFixed(4) + "%";

function measure() {
  const probe = make(SVG, "text", frames);
  probe.textContent = "M".repeat(50);
  fontSize = parseFloat(getComputedStyle(probe).fontSize) || 12;
  letter = probe.getComputedTextLength() / 50 || 7;
  probe.textContent = "i".repeat(50);
  monospace = Math.abs(probe.getComputedTextLength() / 50 - letter) < 0.01;
  probe.remove();
}

function make(namespace, name, into, attributes) {
  const element = document.createElementNS(namespace, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  into.appendChild(element);
  return element;
}

const isLong = name => !option.plain && !option.left && hasParts(name);

function cut(characters, keep) {
  if (keep >= characters.length) return characters.join("");
  if (isLong(characters.join(""))) return shortName(characters.join(""), keep);
  return option.left ? ".." + characters.slice(characters.length - keep + 2).join("")
                     : characters.slice(0, keep - 2).join("") + "..";
}

function setLabel(i, x, room) {
  let text = items[i].querySelector("text");
  const fit = Math.floor((room - 2 * textGap) / letter * (monospace ? 1 : 1.6));
  if (fit < 3) {
    if (text && text.textContent) text.textContent = "";
    return false;
  }
  // A name may be 100 kB long: only as much of it as could fit is looked at.
  const whole = nameOf(i), most = isLong(whole) ? foldable : 2 * fit + 4;
  const part = whole.length <= most ? whole : option.left ? whole.slice(-most) : whole.slice(0, most);
  const characters = [...part];
  let keep = whole.length > most ? Math.min(fit, characters.length - 1) : fit;
  const label = cut(characters, keep);
  if (!text) {
    text = make(SVG, "text", rects[i].parentNode,
                {y: number(rects[i], "y") + Math.floor((rowHeight + fontSize) / 2) - 3});
    const fill = /^#(..)(..)(..)$/.exec(rects[i].getAttribute("fill"));
    if (fill && !takesBlack(fill.slice(1).map(h => parseInt(h, 16)))) text.classList.add("w");
  }
  if (text.textContent !== label) text.textContent = label;
  if (!monospace || /[^ -~]/.test(label)) {
    while (keep > 3 && text.getComputedTextLength() > room - textGap)
      text.textContent = cut(characters, keep = Math.min(keep, characters.length) - 1);
    if (keep <= 3 && text.getComputedTextLength() > room - textGap) text.textContent = "";
  }
  text.setAttribute("x", percent(x + textGap, width));
  return true;
}

function takesBlack(rgb) {
  const [r, g, b] = rgb.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179;
}

// Everything in sight below frame i, parents first. `narrow` is what is not worth looking at.
function inSight(i) {
  const found = [], narrow = least * size[i] / width;
  for (let k = i; k < end[i];) {
    if (size[k] < narrow) k = end[k];
    else found.push(k++);
  }
  return found;
}

function place(i, from, to) {
  const x = Math.max(0, (left[i] - from) / to), w = Math.min(1 - x, (left[i] + size[i] - from) / to - x);
  rects[i].setAttribute("x", percent(x, 1));
  rects[i].setAttribute("width", percent(w, 1));
  return setLabel(i, x * width, w * width);
}

// Any view but the whole is placed frame by frame; what leaves it goes back to where the file has it.
function drawZoomed() {
  const next = inSight(zoomed);
  for (let a = parent[zoomed]; a >= 0; a = parent[a]) next.push(a);
  const keep = new Set(next);
  for (const i of shown)
    if (!keep.has(i)) {
      items[i].classList.remove("v", "p");
      place(i, 0, total);
    }
  for (const i of next) {
    items[i].classList.add("v");
    items[i].classList.toggle("p", i < zoomed);
    place(i, left[zoomed], size[zoomed]);
  }
  frames.classList.add("z");
  shown = next;
}

// The whole is as the file has it: only labels follow the window.
function drawWhole() {
  for (const i of shown) {
    items[i].classList.remove("v", "p");
    place(i, 0, total);
  }
  frames.classList.remove("z");
  shown = [];
  const labels = inSight(0).filter(i => setLabel(i, left[i] / total * width, size[i] / total * width));
  const now = new Set(labels);
  for (const i of rootLabels) if (!now.has(i)) setLabel(i, 0, 0);
  rootLabels = labels;
}

const draw = () => zoomed ? drawZoomed() : drawWhole();

// ---- zoom ----

const trail = [];
let pushed = 0;

function zoom(i, remember = true) {
  if (i === zoomed) return;
  if (remember) trail.push(zoomed);
  zoomed = i;
  draw();
  search();
  backButton.hidden = !trail.length;
  resetButton.hidden = !zoomed;
  if (remember) saveState(true);
  tell(zoomed);
}

function back() {
  if (!trail.length) return;
  if (pushed) history.back();
  else zoom(trail.pop(), false), saveState(false);
}

// ---- search ----

let pattern = null, isPlain = false, marked = [], verdicts = new Map();

function matches(i) {
  const name = nameOf(i);
  let verdict = verdicts.get(name);
  if (verdict === undefined) verdicts.set(name, verdict = pattern.test(name));
  return verdict;
}

function setSearch(remember = true) {
  const term = searchInput.value;
  verdicts = new Map();
  pattern = null;
  if (term) ({pattern, isPlain} = searchPattern(term, caseBox.checked));
  search();
  if (remember) saveState(false);
}

// Marks what is in sight. The share counts each place along the width once: below a match nothing is looked at again.
function search() {
  for (const i of marked) items[i].classList.remove("m");
  marked = [];
  matchedText.textContent = "";
  if (!pattern) return;
  const sight = zoomed ? shown : items.keys();
  for (const i of sight)
    if (matches(i)) {
      items[i].classList.add("m");
      marked.push(i);
    }
  let sum = 0;
  for (let k = zoomed; k < end[zoomed];) {
    if (matches(k)) sum += size[k], k = end[k];
    else k++;
  }
  const share = 100 * sum / size[zoomed];
  matchedText.textContent = "Matched: " + (share === 100 ? "100" : share.toFixed(1)) + "%" + (isFoundOutside() ? ", more outside the zoom" : "") + (isPlain ? " (as plain text)" : "");
}

// What a frame was called by is in sight, too.
function isFoundOutside() {
  for (let k = 1; zoomed && k < count; k++) {
    if (k === zoomed) k = end[zoomed];
    if (k < count && (end[k] <= zoomed || k > zoomed) && matches(k)) return true;
  }
  return false;
}

function stepFound(direction) {
  const list = marked.filter(i => i && inView(i)).sort((a, b) => a - b);
  if (!list.length) return;
  const after = list.findIndex(i => direction > 0 ? i > focused : i >= focused), at = after < 0 ? list.length : after;
  focus(list[(direction > 0 ? at : at - 1 + list.length) % list.length]);
}

// ---- state in the URL ----

function saveState(isNew) {
  const url = new URL(location.href), query = url.searchParams;
  for (const key of ["x", "y", "s", "ic", "mc"]) query.delete(key);
  if (zoomed) {
    query.set("x", rects[zoomed].getAttribute("fg:x"));
    query.set("y", depth[zoomed]);
  }
  if (searchInput.value) query.set("s", searchInput.value);
  if (searchInput.value && caseBox.checked) query.set("mc", "1");
  try {
    if (isNew) history.pushState(null, "", url), pushed++;
    else history.replaceState(null, "", url);
  } catch (error) {
    // Some places a picture is shown in have no URL of their own: then there is nothing to keep.
  }
}

function loadState() {
  const query = new URLSearchParams(location.search);
  const x = query.get("x"), y = +query.get("y");
  let target = 0;
  if (x !== null)
    for (let i = 0; i < count; i++)
      if (depth[i] === y && rects[i].getAttribute("fg:x") === x) {
        target = i;
        break;
      }
  searchInput.value = query.get("s") || "";
  caseBox.checked = query.has("mc");
  setSearch(false);
  zoom(target, false);
}

// ---- the bar, the line that tells, and where they stand ----

const bar = make(SVG, "foreignObject", svg, {id: "bar", y: 0, height: 34});
const box = make(HTML, "div", bar);
const button = (name, label, action) => {
  const element = make(HTML, "button", box, {type: "button", title: label});
  element.textContent = name;
  element.addEventListener("click", action);
  element.hidden = true;
  return element;
};
const matchedText = make(HTML, "output", box, {id: "matched", "aria-live": "polite"});
const backButton = button("Back", "To the view before (Backspace)", back);
const resetButton = button("Reset Zoom", "Everything again (Escape)", () => zoom(0));
const searchInput = make(HTML, "input", box, {
  id: "search", type: "search", placeholder: "Search", "aria-label": "Search by regular expression or text",
  title: "A regular expression or text (press /); capitals match only capitals. Enter goes to what was found, n and N to the next and the one before", spellcheck: "false", autocomplete: "off"});
const caseLabel = make(HTML, "label", box, {title: "Small letters match only small ones (Ctrl-I)"});
const caseBox = make(HTML, "input", caseLabel, {id: "case", type: "checkbox", "aria-label": "Match case"});
caseLabel.append("Match case");
const foot = make(SVG, "foreignObject", svg, {id: "foot", height: 22});
const details = make(HTML, "div", foot, {id: "details", role: "status", hidden: ""});

// Nanoseconds as people say them; the title has them all.
function spoken(counts) {
  if (option.unit !== "ns") return counts;
  const amount = digits => {
    const value = +digits.replaceAll(",", ""), [size, name] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([least]) => value >= least) || [1, "ns"];
    return `${(value / size).toFixed(size > 1 ? 2 : 0)} ${name}`;
  };
  return counts.replace(/^ \(([\d,]+) ns(?=,)/, (_, n) => ` (${amount(n)}`).replace(/; was ([\d,]+)(?=,)/, (_, n) => `; was ${amount(n)}`);
}

function tell(i) {
  // The counts are in the last brackets; a name gives way to them.
  const title = i < 0 ? "" : titleOf(i), counts = title.lastIndexOf(" (");
  const parts = counts < 0 ? [title] : [title.slice(0, Math.min(counts, 2000)), spoken(title.slice(counts))];
  details.hidden = i < 0;
  details.replaceChildren(...parts.map(text => Object.assign(document.createElementNS(HTML, "span"), {textContent: text})));
  fitName(details.firstChild, parts[0], option.type + " ");
}

// Of a picture of thousands of rows only those near the window are in the document, or a browser needs half a minute for 100,000: the file
// hides its frames (class t) until they are taken out here.
const nearMargin = 1500, rows = [];
let near = [0, 0]; // the rows that are in the document, from and to
const isTall = svg.classList.contains("t") && svg === document.documentElement;
if (isTall) {
  for (let i = 0; i < count; i++) (rows[depth[i]] ??= []).push(i);
  frames.replaceChildren();
}
svg.classList.remove("t");

function showNear() {
  const a = scrollY - nearMargin, b = scrollY + innerHeight + nearMargin;
  const row = y => Math.min(rows.length, Math.max(0, Math.round((inverted ? y - rootY : rootY - y) / rowHeight)));
  const from = row(inverted ? a : b), to = Math.max(from, row(inverted ? b : a));
  if (from === near[0] && to === near[1]) return;
  for (let d = near[0]; d < near[1]; d++)
    if (d < from || d >= to) for (const i of rows[d]) items[i].remove();
  for (let d = from; d < to; d++)
    if (d < near[0] || d >= near[1]) for (const i of rows[d]) frames.append(items[i]);
  near = [from, to];
}

// What is not in the document can't have the focus, and where a browser would scroll to is anybody's guess.
function reveal(i) {
  const y = number(rects[i], "y");
  if (!isTall || (y > scrollY + 40 && y < scrollY + innerHeight - 60)) return;
  scrollTo(scrollX, y - innerHeight / 2);
  showNear();
}

function stand() {
  if (isTall) showNear();
  const tall = svg.getBoundingClientRect().height, alone = svg === document.documentElement;
  const top = alone ? Math.max(0, scrollY) : 0;
  const bottom = alone ? Math.min(tall, top + innerHeight) : tall;
  bar.setAttribute("y", top);
  foot.setAttribute("y", bottom - 24);
}

// A title that does not fit beside the search gives way to it; the window's own title and its tooltip have all of it.
const heading = svg.querySelector("#title"), headline = heading ? [...heading.textContent] : [];
function fitTitle() {
  if (!headline.length) return;
  heading.textContent = headline.join("");
  const room = searchInput.getBoundingClientRect().left - svg.getBoundingClientRect().left - number(heading, "x") - 8;
  let keep = headline.length;
  while (keep > 1 && heading.getComputedTextLength() > room) {
    keep = Math.min(keep - 1, Math.floor(keep * room / heading.getComputedTextLength()));
    heading.textContent = headline.slice(0, Math.max(0, keep)).join("").trimEnd() + "…";
  }
  if (keep < headline.length) make(SVG, "title", heading, {}).textContent = headline.join("");
}

function resize() {
  if (option.fluid) width = Math.max(200, svg.getBoundingClientRect().width) - 2 * margin;
  frames.setAttribute("width", width);
  bar.setAttribute("width", width + 2 * margin);
  foot.setAttribute("width", width + 2 * margin);
  fitTitle();
  draw();
  stand();
}

// ---- mouse ----

const indexes = new Map(items.map((g, i) => [g, i]));
const frameAt = event => {
  for (let g = event.target; g && g !== frames; g = g.parentNode)
    if (indexes.has(g)) return indexes.get(g);
  return -1;
};
frames.addEventListener("click", event => {
  const i = frameAt(event), link = event.target.closest("a");
  if (i < 0 || (link && !event.ctrlKey)) return;
  event.preventDefault();
  zoom(i);
  focus(i);
});
frames.addEventListener("mouseover", event => tell(frameAt(event)));
frames.addEventListener("mouseout", () => tell(-1));

// ---- keyboard and screen readers: the graph is a tree with one frame that has the focus ----

frames.setAttribute("role", "tree");
frames.setAttribute("aria-label", svg.getAttribute("aria-label"));
let focused = -1;

function focus(i, really = true) {
  if (i < 0) return;
  if (focused >= 0) items[focused].removeAttribute("tabindex");
  focused = i;
  const g = items[i];
  g.setAttribute("role", "treeitem");
  g.setAttribute("tabindex", "0");
  g.setAttribute("aria-level", depth[i] + 1);
  g.setAttribute("aria-label", titleOf(i).slice(0, 2000));
  if (really) reveal(i), g.focus({preventScroll: isTall});
  if (really) tell(i);
}

const inView = i => size[i] * width >= least * size[zoomed];
function widestCallee(i) {
  let best = -1;
  for (let k = i + 1; k < end[i]; k = end[k])
    if (best < 0 || size[k] > size[best]) best = k;
  return best >= 0 && inView(best) ? best : i;
}
function beside(i, step) {
  for (let k = i + step; k >= zoomed && k < end[zoomed]; k += step)
    if (depth[k] === depth[i] && inView(k)) return k;
  return i;
}

function startSearch() {
  searchInput.focus();
  searchInput.select();
}
function escape() {
  if (searchInput.value) searchInput.value = "", setSearch();
  else if (zoomed) zoom(0), focus(0);
}
const inward = i => parent[i] >= 0 ? parent[i] : i;
const keys = {
  n: () => stepFound(1), N: () => stepFound(-1),
  ArrowLeft: () => focus(beside(focused, -1)),
  ArrowRight: () => focus(beside(focused, 1)),
  ArrowUp: () => focus(inverted ? inward(focused) : widestCallee(focused)),
  ArrowDown: () => focus(inverted ? widestCallee(focused) : inward(focused)),
  Home: () => focus(zoomed),
  Enter: () => zoom(focused),
  " ": () => zoom(focused),
  Escape: escape,
  Backspace: back,
  "/": startSearch,
  F3: startSearch,
};
svg.addEventListener("keydown", event => {
  const typing = event.target === searchInput;
  if ((event.ctrlKey || event.metaKey) && !event.altKey) {
    if (event.key === "f") startSearch();
    else if (event.key === "i") caseBox.checked = !caseBox.checked, setSearch();
    else return;
  } else if (typing) {
    if (event.key === "Escape") searchInput.value = "", setSearch(), focus(focused);
    else if (event.key === "Enter") setSearch(), stepFound(event.shiftKey ? -1 : 1);
    else return;
  } else if (keys[event.key] && !event.altKey && !(event.target.closest("button,label,a") && /^( |Enter)$/.test(event.key))) {
    keys[event.key]();
  } else return;
  event.preventDefault();
});
searchInput.addEventListener("input", () => setSearch());
caseBox.addEventListener("change", () => setSearch());
addEventListener("popstate", () => {
  pushed = Math.max(0, pushed - 1);
  trail.pop();
  loadState();
});
addEventListener("resize", resize);
addEventListener("scroll", stand);

// ---- begin ----

if (option.fluid) {
  svg.removeAttribute("viewBox");
  svg.setAttribute("width", "100%");
}
measure();
resize();
focus(0, false);
if (svg === document.documentElement && !inverted) scrollTo(0, svg.getBoundingClientRect().height); // where the root is; what is above is mostly air
loadState();
})();
