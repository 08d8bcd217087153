// What the tests of the page share: two small profiles, and ways to look at the page.
import { draw } from "./harness.mjs";

// Two threads of one process, 1 ms apart; perf's own text.
export function script() {
  const sample = (comm, tid, ms, frames) => `${comm} 10/${tid} [000] ${(100 + ms / 1000).toFixed(6)}: 1000000 cpu-clock: \n` +
    frames.map((name, i) => `\t    ${(4096 + i).toString(16)} ${name}+0x1 (/bin/app)\n`).join("") + "\n";
  let text = "";
  for (let ms = 0; ms < 60; ms++) {
    text += sample("main", 10, ms, ms < 30 ? ["read", "parse", "main"] : ["add", "step", "run", "main"]);
    if (ms >= 40) text += sample("worker", 11, ms + 0.5, ["hash", "work", "thread"]);
  }
  return text;
}
export const folded = `app;main;parse;read 30
app;main;parse 20
app;main;run;step;add 25
app;main;run;step;step;add 15
app;idle 10
`;
export const manyNames = Array.from({ length: 60 }, (_, i) => `zoomed_${i % 3 ? i : 0};Name::space${i}<int>;lib/f${i * 7}_[${"kjiw"[i % 4]}];[unknown${i}] 1\n`).join("");
export const simple = draw(folded, "html", "--html");
export const timed = draw(script(), "html", "--html");

export const open = async (page, url) => {
  await page.goto(url);
  await page.waitForFunction(() => globalThis.wickPage && wickPage.graph.drawn + wickPage.chart.drawn > 0);
};
export const settle = page => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
export const view = async (page, name) => (await page.locator(`#views [data-view=${name}]`).click(), settle(page));
// Where a frame is on the canvas: pane, middle of the visible part.
export const spot = (page, name, pane = 0) => page.evaluate(([wanted, which]) => {
  const g = wickPage.graph, p = g.panes[which], s = p.shape, box = g.canvas.getBoundingClientRect();
  for (let n = 0; n < s.count; n++) {
    if (g.name(p, n) !== wanted) continue;
    const scale = g.width / (p.to - p.from), a = Math.max(0, (s.left[n] - p.from) * scale), b = Math.min(g.width, (s.left[n] + s.size[n] - p.from) * scale);
    if (b > a) return {x: box.left + (a + b) / 2, y: box.top + g.y(p, s.depth[n]) + 8, width: b - a};
  }
  return null;
}, [name, pane]);
export const click = async (page, name, pane, options) => {
  const at = await spot(page, name, pane);
  await page.mouse.click(at.x, at.y, options);
  await settle(page);
};
// What a button would save.
export const saved = (page, button) => page.evaluate(selector => new Promise(done => {
  const real = URL.createObjectURL;
  URL.createObjectURL = blob => (blob.text().then(done), URL.createObjectURL = real, real.call(URL, blob));
  document.querySelector(selector).click();
}), button);
export const details = page => page.locator("#details").textContent();
export const matched = page => page.locator("#matched").textContent();
export const names = (page, pane = 0) => page.evaluate(which => {
  const g = wickPage.graph, p = g.panes[which], list = [];
  for (let n = 0; n < p.shape.count; n++) if (p.shape.size[n]) list.push(`${"-".repeat(p.shape.depth[n])}${g.name(p, n)} ${p.shape.total[n]}`);
  return list;
}, pane);
// In the list of threads, by its filter.
export const chooseThread = async (page, name) => {
  await page.locator("#thread").click();
  await page.fill("#thread-filter", name);
  await page.keyboard.press("Enter");
  await settle(page);
};
