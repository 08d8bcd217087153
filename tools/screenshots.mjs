// usage: PLAYWRIGHT=… CHROMIUM=… node tools/screenshots.mjs RECORDING BEFORE AFTER
//        PLAYWRIGHT=… CHROMIUM=… node tools/screenshots.mjs --sizes|--lifetimes RECORDING
//
// Takes the pictures in docs/pictures anew, with the wick in build/: of a recording of `wick flame` at work (wick record --wall), and of two profiles to
// compare. --sizes takes only the page on a telephone, in a small window and on a large screen, light and dark, of any recording of waits (wick record
// --wall -- demo/convoy's program); --lifetimes takes only the tab of that name, of a recording of allocations (wick record --heap). What a picture needs and the recording does not have is said at once, not waited for.
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT);
const top = join(dirname(fileURLToPath(import.meta.url)), ".."), work = mkdtempSync(join(tmpdir(), "wick-"));
const only = { "--sizes": shootSizes, "--lifetimes": shootLifetimes }[process.argv[2]];
const [recording, before, after] = process.argv.slice(only ? 3 : 2).map(path => resolve(path));
const wick = (name, ...words) => (execFileSync(join(top, "build/wick"), [...words, "-q", "-o", join(work, name)]), "file://" + join(work, name));
const title = ["--title", "wick drawing 399,324 DWARF stacks", "--subtitle", "cpu-clock at 1,999 Hz"];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const settle = page => page.waitForTimeout(300);

async function shoot(name, url, height, act = () => {}, colorScheme = "light", width = 1300) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  page.setDefaultTimeout(20000);
  await page.goto(url);
  await settle(page);
  await act(page);
  await settle(page);
  await page.screenshot({ path: join(top, "docs/pictures", name + ".png") });
  await page.close();
}
const view = name => page => page.locator(`#views [data-view=${name}]`).click();
async function click(there, what) {
  if (!await there.count()) throw new Error(`the recording has no ${what}`);
  await there.first().click();
}
const zoom = (page, name) => click(page.locator("#frames > g").filter({ has: page.locator("title", { hasText: new RegExp("^" + name + " \\(") }) }), name);

async function shootAll() {
  const svg = wick("one.svg", "flame", "--max-depth", "34", ...title, recording);
  await shoot("svg", svg, 700);
  await shoot("svg-dark", svg, 700, async page => {
    await zoom(page, "command_flame");
    await page.fill("#search", "unwind|^walk");
  }, "dark");
  await shoot("svg-diff", wick("diff.svg", "diff", "--no-inline", "--max-depth", "22", before, after), 480);

  const html = wick("one.html", "flame", "--html", ...title, recording);
  for (const name of ["flame", "icicle", "reversed", "table"]) await shoot("page-" + name, html, 640, view(name));
  await shoot("page-sandwich", html, 640, async page => {
    await view("table")(page);
    await page.fill("#filter", "^handle_mm_fault$");
    await click(page.locator("#table td.name button"), "handle_mm_fault");
  });
  await shoot("page-timeline", wick("wall.html", "flame", "--html", "--wall", ...title, recording), 640, async page => {
    await view("timeline")(page);
    const box = await page.locator("#lanes").boundingBox();
    await page.mouse.move(box.x + 300, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + 700, box.y + 10, { steps: 4 });
    await page.mouse.up();
  });
  const source = wick("source.html", "flame", "--html", "--wall", "--source", top, ...title, recording);
  await shoot("page-calltree", source, 640, view("calltree"));
  await shoot("page-heat", source, 480, view("heat"));
  await shoot("page-diff", wick("diff.html", "diff", "--no-inline", "--html", before, after), 480);
}

// Small windows show what is tight, large ones what is lost in them.
async function shootSizes() {
  const url = wick("sizes.html", "flame", "--html", "--wall", "--title", "Four threads and a lock", recording);
  for (const scheme of ["light", "dark"]) {
    const name = width => `page-${width}${scheme === "dark" ? "-dark" : ""}`;
    await shoot(name(390), url, 560, view("flame"), scheme, 390);
    await shoot(name(800), url, 560, view("flame"), scheme, 800);
    await shoot(name(3840), url, 1000, view("calltree"), scheme, 3840);
  }
}

async function shootLifetimes() {
  await shoot("page-lifetimes", wick("heap.html", "flame", "--html", "--title", "Memory of a Python program", recording), 540, view("lifetimes"), "light", 800);
}

try {
  await (only || shootAll)();
} finally {
  await browser.close();
}
