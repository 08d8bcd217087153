/*
 * How long the blocks lived that a function and its callees allocated: a row for each power of ten, as in `wick
 * report --lifetimes`.
 */
import { eachCount, passing } from "./shape.js";

// Sum by lifetime, for the blocks of the current selection.
export function lifetimeSums(model, choice, name) {
  const event = model.series.some(one => one.event === "allocated") ? "allocated" : choice.event;
  const through = passing(model, {...choice, focus: name || choice.focus}), sums = model.about.lifetimes.map(() => 0);
  eachCount(model, {...choice, event}, (node, series, amount) => {
    const lifetime = model.series[series].lifetime;
    if (lifetime !== undefined && (!through || through[node])) sums[lifetime] += amount;
  });
  return sums;
}

export class Lifetimes {
  constructor(section, model, events) {
    Object.assign(this, {model, events, body: section.querySelector("tbody"), about: section.querySelector("#lifetimes-about")});
  }

  get isEmpty() {
    return !this.model.about.lifetimes;
  }

  show(choice, name) {
    const sums = lifetimeSums(this.model, choice, name), whole = sums.reduce((a, b) => a + b, 0), most = Math.max(...sums, 1);
    this.about.textContent = `${this.events.amount(whole)} allocated${name ? " by it and what it calls" : ""}.`;
    this.body.replaceChildren(...sums.map((sum, i) => {
      const row = document.createElement("tr"), cells = [this.events.amount(sum), `${(100 * sum / (whole || 1)).toFixed(2)}%`, this.model.about.lifetimes[i], ""];
      row.append(...cells.map((text, k) => Object.assign(document.createElement("td"), {textContent: text, className: ["number", "number", "lifetime", "histogram"][k]})));
      row.lastChild.appendChild(document.createElement("i")).style.width = 100 * sum / most + "%";
      return row;
    }));
  }
}
