// usage: PLAYWRIGHT=… CHROMIUM=… node bench/pan.mjs PAGE.html
//
// How long the page takes to draw itself while it is zoomed into and moved about: milliseconds in the median, the longest, frames drawn in the
// median, and how many nodes the profile has.
import { createRequire } from "node:module";
import { resolve } from "node:path";

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
await page.goto("file://" + resolve(process.argv[2]), { timeout: 180000 });
await page.waitForFunction(() => globalThis.wickPage && wickPage.graph.drawn > 0, null, { timeout: 180000 });
const result = await page.evaluate(() => {
  const graph = wickPage.graph, pane = graph.panes[0], whole = pane.shape.size[0], times = [], drawn = [];
  for (let step = 0; step < 120; step++) {
    const width = whole / 2 ** (step % 40 / 4), from = (whole - width) * (step * 37 % 120) / 120;
    Object.assign(pane, { from, to: from + width });
    const start = performance.now();
    graph.settle(pane);
    graph.paint();
    times.push(performance.now() - start);
    drawn.push(graph.drawn);
  }
  return { times, drawn, nodes: wickPage.model.count };
});
const sorted = list => list.sort((a, b) => a - b);
console.log(`${sorted(result.times)[60].toFixed(2)} ${result.times[119].toFixed(2)} ${sorted(result.drawn)[60]} ${result.nodes}`);
await browser.close();
