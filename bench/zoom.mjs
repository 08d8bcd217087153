// usage: PLAYWRIGHT=… CHROMIUM=… node bench/zoom.mjs PICTURE.svg…
//
// How long a click on a frame takes until it is drawn, and how many of the picture's frames the script touches for it: the median of the
// widest frames but the outermost, one by one, back to the whole after each.
import { createRequire } from "node:module";
import { resolve } from "node:path";

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const median = list => list.sort((a, b) => a - b)[list.length >> 1];
for (const path of process.argv.slice(2)) {
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
  await page.goto("file://" + resolve(path), { timeout: 180000 });
  const result = await page.evaluate(async () => {
    const frames = document.getElementById("frames"), groups = [...frames.children];
    const width = g => +g.querySelector("rect").getAttribute("fg:w");
    const root = groups.reduce((best, g) => width(g) > width(best) ? g : best);
    const chosen = groups.filter(g => width(g) < width(root) / 2).sort((a, b) => width(b) - width(a)).slice(0, 60).filter((_, i) => i % 6 === 0);
    const touched = new Set(), times = [], counts = [];
    const observer = new MutationObserver(records => {
      for (const { target } of records) {
        let top = target;
        while (top !== frames && top.parentNode !== frames && top.parentNode) top = top.parentNode;
        if (top !== frames) touched.add(top);
      }
    });
    observer.observe(frames, { attributes: true, childList: true, characterData: true, subtree: true });
    const drawn = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    for (const g of chosen) {
      touched.clear();
      const start = performance.now();
      g.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      await drawn();
      times.push(performance.now() - start);
      counts.push(touched.size);
      root.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      await drawn();
    }
    return { total: groups.length, times, counts };
  });
  console.log(`${median(result.times).toFixed(1)} ${median(result.counts)} ${result.total}`);
  await page.close();
}
await browser.close();
