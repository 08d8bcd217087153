// What the browser tests share: a browser, cases that report one line each, and pictures drawn by wick.
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import assert from "node:assert/strict";

const playwright = createRequire(import.meta.url)(process.env.PLAYWRIGHT);
export const inFirefox = process.env.BROWSER_KIND === "firefox";
export const work = join(process.env.WORK || "/tmp", basename(process.argv[1], ".mjs")); // two of these run side by side
mkdirSync(work, { recursive: true });
const cases = [], label = inFirefox ? "firefox/" : "browser/";
const files = new Map(); // what was drawn already
let drawn = 0;

export { assert };
// The last argument of a case of many nodes, in which it is the size that matters.
export const chromiumIsEnough = process.env.LONG ? undefined : "Chromium was asked; make test-long asks Firefox, too";
export const test = (name, body, notInFirefox) => cases.push({ name, body, notInFirefox });

// A file made by `wick flame` from folded text (or bytes); its URL. Of what was drawn before, the same file.
export function draw(folded, extension, ...options) {
  const key = [folded.toString("latin1"), extension, ...options].join("\0");
  if (!files.has(key)) files.set(key, drawAnew(folded, extension, options));
  return files.get(key);
}

function drawAnew(folded, extension, options) {
  const input = join(work, `input${++drawn}.folded`), output = join(work, `output${drawn}.${extension}`);
  writeFileSync(input, folded);
  execFileSync(process.env.WICK, ["flame", input, "-o", output, ...options], { stdio: ["ignore", "ignore", "pipe"] });
  return "file://" + output;
}

// The same of two, by `wick diff`.
export function compare(before, after, extension, ...options) {
  const inputs = [before, after].map((text, i) => join(work, `input${++drawn}-${i}.folded`)), output = join(work, `output${drawn}.${extension}`);
  [before, after].forEach((text, i) => writeFileSync(inputs[i], text));
  execFileSync(process.env.WICK, ["diff", "-q", ...inputs, "-o", output, ...options], { stdio: ["ignore", "ignore", "pipe"] });
  return "file://" + output;
}

export const palettes = ["wick", "waits", "hot", "mem", "io", "wakeup", "chain", "java", "js", "perl", "python", "rust", "red", "green", "blue", "aqua", "yellow", "purple", "orange"];

// WCAG's contrast of a text with `fill` at `alpha` over `back`; all are CSS colours as a browser writes them.
export function contrast(text, fill, alpha, back) {
  const parse = colour => colour[0] === "#" ? [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16)) : colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  const light = channels => channels.map(c => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const under = parse(back), mixed = parse(fill).map((c, i) => c * alpha + under[i] * (1 - alpha));
  const [a, b] = [light(parse(text)), light(mixed)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}

// A page that fails the case on any script error, dialog or request that is not for the file itself.
async function openPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1220, height: 900 }, ...options });
  context.setDefaultTimeout(300000); // what is to come comes, however busy the machine is
  const page = await context.newPage();
  page.wrong = [];
  page.on("pageerror", error => page.wrong.push("script error: " + error.message));
  page.on("dialog", dialog => (page.wrong.push("dialog: " + dialog.message()), dialog.dismiss()));
  page.on("request", request => {
    if (!/^(file|data|blob|about):/.test(request.url())) page.wrong.push("request: " + request.url());
  });
  return page;
}

// Debian's Firefox speaks WebDriver BiDi, which playwright-core offers as a channel of its own. Not all options of a page reach it that way:
// a dark one, or one without scripts, is a browser of its own there.
function launch(options = {}) {
  const executablePath = process.env.BROWSER;
  if (!inFirefox) return playwright.chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const firefoxUserPrefs = {};
  if (options.colorScheme === "dark") firefoxUserPrefs["layout.css.prefers-color-scheme.content-override"] = 0;
  if (options.javaScriptEnabled === false) firefoxUserPrefs["javascript.enabled"] = false;
  return playwright.firefox.launch({ executablePath, channel: "moz-firefox", firefoxUserPrefs });
}

async function runOne(browser, group, { name, body, notInFirefox }, options) {
  if (inFirefox && notInFirefox) return console.log(`skip ${label}${group}-${name}: ${notInFirefox}`);
  const own = inFirefox && options ? await launch(options) : null;
  const page = await openPage(own ?? browser, own ? {} : options);
  const start = Date.now();
  try {
    await body(page);
    assert.deepEqual(page.wrong, []);
    console.log(`ok ${label}${group}-${name}`);
    if (process.env.TIMES) console.error(`${Date.now() - start} ms ${name}`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`FAIL ${label}${group}-${name}: ${String(error.message).split("\n").slice(0, 6).join(" | ")}`);
  }
  await page.context().close();
  await own?.close();
}

// Under the sanitizers wick draws what each case looks at first, and no browser is started: the files are the ordinary build's, byte for byte, and were looked at there.
async function drawOnly(group, { name, body }) {
  const looked = Symbol("looked");
  const page = new Proxy({}, { get: () => { throw looked; } });
  try {
    await body(page);
  } catch (error) {
    if (error !== looked) {
      process.exitCode = 1;
      return console.log(`FAIL ${label}${group}-${name} is drawn: ${String(error.message).split("\n").slice(0, 6).join(" | ")}`);
    }
  }
  console.log(`ok ${label}${group}-${name} is drawn`);
}

export async function runAll(group, pageOptions = {}) {
  if (process.env.SANITIZED) {
    for (const one of cases) await drawOnly(group, one);
    return;
  }
  const browser = await launch().catch(error => {
    if (!inFirefox || !/unknown command/.test(error.message)) throw error;
    console.log(`skip ${label}${group}: this Firefox is older than what playwright-core can drive (Debian's security updates have a newer one)`);
  });
  if (!browser) return;
  const chosen = cases.filter(one => !process.env.ONLY || one.name === process.env.ONLY);
  for (const one of chosen) await runOne(browser, group, one, pageOptions[one.name]);
  await browser.close();
}

// Names as a hostile program would have them, each a frame of its own. Newlines and semicolons cannot stand in folded text.
export const hostile = [
  "<script>window.ran=1</script>", "<img src=x onerror=window.ran=1>", "\"onload=\"window.ran=1", "'-window.ran=1-'",
  "]]><script>window.ran=1</script>", "--><svg onload=window.ran=1>", "</title><script>window.ran=1</script>",
  "&ltb&gt", "${window.ran=1}", "`window.ran=1`", "\\u003cscript\\u003e", "</script><script>window.ran=1</script>",
  "expression(window.ran=1)", "}*{display:none", "javascript:window.ran=1", "\u202Egnirts txet\u202C", "\u200Fabc\u200E", "zero\u200bwidth\ufeff", "next\u0085line",
  "__proto__", "constructor", "toString", "emoji 👩‍👩‍👧‍👦 ok", "日本語の関数", "e\u0301\u0301\u0301", "a  b   c",
];

// A name as every view shows it: what cannot be seen, or turns text around, as an escape.
export const shownName = name => name.replace(/[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\ufe00-\ufe0f]/g, c =>
  c < "\x80" ? "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0") : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
