/*
 * A list of which only the visible rows are in the document. All rows have the same height; `make(index)` returns the
 * element of a row; `drawn` is called when they are in the document. The box scrolls by itself, and the inner element is as high as all rows together.
 */
export class Rows {
  constructor(box, height, make, drawn = () => {}) {
    Object.assign(this, {box, height, make, drawn, count: 0});
    this.inner = box.appendChild(document.createElement("div"));
    this.inner.className = "rows";
    this.inner.setAttribute("role", "presentation");
    box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(box);
  }

  show(count) {
    this.count = count;
    this.inner.style.height = count * this.height + "px";
    this.draw();
  }

  draw() {
    const {box, height} = this;
    if (!box.clientHeight) return;
    const first = Math.max(0, Math.floor(box.scrollTop / height) - 4), last = Math.min(this.count, Math.ceil((box.scrollTop + box.clientHeight) / height) + 4);
    const list = [];
    for (let i = first; i < last; i++) {
      const row = this.make(i);
      row.style.top = i * height + "px";
      list.push(row);
    }
    this.inner.replaceChildren(...list);
    this.drawn();
  }

  // `above` precedes the rows and stays there.
  intoSight(index, above = 0) {
    const {box, height} = this, top = index * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight - above) box.scrollTop = top + height - box.clientHeight + above;
    this.draw();
  }

  get page() {
    return Math.max(1, Math.floor(this.box.clientHeight / this.height) - 2);
  }
}
