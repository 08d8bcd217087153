/*
 * The choice of a thread: a list that opens below a button, with a filter, sorted by CPU time or by name. Only the
 * visible rows are in the document, so five thousand threads open as fast as five. It is WAI-ARIA's combobox with a
 * listbox: the filter keeps the focus, arrow keys move the choice.
 */
import { Rows } from "./rows.js";

const threadRowHeight = 22;

export class ThreadChooser {
  // threads(): [{name, amount, share}, …] for everything else that is chosen.
  constructor(elements, events) {
    Object.assign(this, {...elements, events, list: [], at: 0});
    this.rows = new Rows(this.box, threadRowHeight, index => this.row(index));
    this.button.addEventListener("click", () => this.popup.hidden ? this.open() : this.close(true));
    this.filter.addEventListener("input", () => this.choose());
    this.order.addEventListener("change", () => this.choose());
    this.popup.addEventListener("keydown", event => this.key(event));
    this.box.addEventListener("click", event => {
      const row = event.target.closest("[role=option]");
      if (row) this.take(+row.dataset.index);
    });
    addEventListener("mousedown", event => {
      if (!this.popup.hidden && !event.target.closest("#thread-box")) this.close(false);
    });
  }

  show(name) {
    this.chosen = name;
    this.button.textContent = name || "all";
    this.button.title = name;
  }

  open() {
    this.all = this.events.threads();
    this.popup.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    this.filter.value = "";
    this.choose();
    this.filter.focus();
  }

  close(focus) {
    this.popup.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    if (focus) this.button.focus();
  }

  // The threads that pass the filter; the entry for all threads comes first.
  choose() {
    const text = this.filter.value.toLowerCase(), byName = this.order.value === "name";
    const found = this.all.filter(thread => !text || thread.name.toLowerCase().includes(text));
    found.sort((a, b) => (byName ? 0 : b.amount - a.amount) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    this.list = text ? found : [{name: "", amount: -1}, ...found];
    this.at = Math.max(0, this.list.findIndex(thread => thread.name === this.chosen));
    this.about.textContent = `${found.length.toLocaleString("en")} of ${this.all.length.toLocaleString("en")} threads`;
    this.box.scrollTop = 0;
    this.rows.show(this.list.length);
    this.move(this.at);
  }

  row(index) {
    const {name, amount} = this.list[index], row = document.createElement("div");
    row.id = "thread-row-" + index;
    row.dataset.index = index;
    row.className = "thread-row" + (index === this.at ? " chosen" : "");
    for (const [key, value] of Object.entries({role: "option", "aria-selected": index === this.at, "aria-posinset": index + 1, "aria-setsize": this.list.length})) row.setAttribute(key, value);
    for (const text of [name || "all", amount < 0 ? "" : this.events.amount(amount)]) row.appendChild(document.createElement("span")).textContent = text;
    row.title = name;
    return row;
  }

  move(index) {
    this.at = Math.max(0, Math.min(this.list.length - 1, index));
    this.rows.intoSight(this.at);
    if (this.list.length) this.filter.setAttribute("aria-activedescendant", "thread-row-" + this.at);
    else this.filter.removeAttribute("aria-activedescendant");
  }

  take(index) {
    if (!this.list[index]) return;
    this.close(true);
    this.events.chosen(this.list[index].name);
  }

  key(event) {
    const step = {ArrowDown: 1, ArrowUp: -1, PageDown: this.rows.page, PageUp: -this.rows.page}[event.key];
    if (event.target === this.order && event.key !== "Escape") return;
    if (step) this.move(this.at + step);
    else if (event.key === "Enter") this.take(this.at);
    else if (event.key === "Escape") this.close(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
