// The pages of `wick serve` in Chromium: the list, a page that holds its profile, one that asks for what it shows. No script but wick's runs, nothing is asked of
// another host, and policies are never violated.
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT);
const { LIST, ASK, FLEET, EMPTY } = process.env;
const browser = await chromium.launch({ executablePath: process.env.BROWSER, args: ["--no-sandbox"] });

async function test(name, body) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 800 } });
  context.setDefaultTimeout(300000);
  const page = await context.newPage(), wrong = [];
  page.on("pageerror", error => wrong.push("script error: " + error.message));
  page.on("console", message => message.type() === "error" && !/favicon|404|422/.test(message.text() + message.location().url) && wrong.push("console: " + message.text()));
  page.on("request", request => /^(http:\/\/127\.0\.0\.1:|data:|blob:)/.test(request.url()) || wrong.push("request: " + request.url()));
  try {
    await body(page, wrong);
    assert.deepEqual(wrong, []);
    console.log(`ok browser/${name}`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`FAIL browser/${name}: ${String(error.message).split("\n").slice(0, 6).join(" | ")} ${wrong.join("; ")}`);
  }
  await context.close();
}

const drawn = page => page.waitForFunction(() => globalThis.wickPage && wickPage.graph.drawn > 0);

await test("the list has kinds and totals, newest first", async page => {
  await page.goto(LIST);
  await page.waitForFunction(() => globalThis.wickListDone);
  const rows = await page.locator("#runs tbody tr").allInnerTexts();
  assert.match(rows[0], /wick-out\/run1.*run \(folded\)\s*3 samples/s);
  assert.match(rows[2], /a\.folded\s*1970-01-01 00:50:00 UTC\s*46 B\s*folded\s*100 samples/);
  assert.match(rows[5], /broken\.data.*can't be read/s);
  await page.locator("#filter").fill("ODD");
  assert.equal(await page.locator("#runs tbody tr:visible").count(), 1);
});

await test("a profile of the list opens, and only the page's script runs", async (page, wrong) => {
  await page.goto(LIST);
  await page.getByText("hostile.folded").click();
  await drawn(page);
  assert.equal(await page.locator("#subtitle").textContent(), "hostile.folded");
  assert.equal(await page.evaluate(() => globalThis.ran), undefined);
  const ran = await page.evaluate(() => new Promise(done => {
    document.addEventListener("securitypolicyviolation", () => done("refused"));
    const script = document.createElement("script");
    script.textContent = "window.ran = 1";
    document.head.append(script);
    setTimeout(() => done("ran " + globalThis.ran), 30000);
  }));
  assert.equal(ran, "refused");
  assert.match(wrong.splice(0).join(), /^console: Executing inline script violates[^;]*$/);
});

await test("two of the list are compared", async page => {
  await page.goto(LIST);
  await page.getByLabel("Choose a.folded").check();
  assert(await page.locator("#compare").isDisabled());
  await page.getByLabel("Choose sub/b.folded").check();
  await page.locator("#compare").click();
  await drawn(page);
  assert.match(page.url(), /before=a\.folded&after=sub%2Fb\.folded/);
});

const asked = page => page.waitForFunction(() => globalThis.wickAsk?.shown > 0 && wickAsk.graph.drawn > 0);
const settled = (page, shown) => page.waitForFunction(before => wickAsk.shown > before, shown);
const shown = page => page.evaluate(() => wickAsk.shown);

await test("a page that asks: graph, zoom, back, search", async page => {
  await page.goto(ASK);
  await asked(page);
  assert.match(await page.locator("#about").textContent(), /folded, 100 samples, 4 functions, 4 frames/);
  const spot = name => page.evaluate(wanted => {
    const { canvas, nodes, total } = wickAsk.graph, box = canvas.getBoundingClientRect(), node = nodes.find(one => one.name === wanted);
    return { x: box.left + (node.left + node.total / 2) / total * box.width, y: box.top + wickAsk.graph.y(node.depth) + 8 };
  }, name);
  let at = await spot("parse");
  await page.mouse.move(at.x, at.y);
  assert.equal(await page.locator("#details").textContent(), "parse: 40 samples (40.00 %), itself 10 samples");
  let before = await shown(page);
  await page.mouse.click(at.x, at.y);
  await settled(page, before);
  assert.deepEqual(await page.evaluate(() => wickAsk.graph.nodes.map(node => [node.name, node.left, node.total])), [["parse", 0, 40], ["read", 0, 30]]);
  assert.equal(await page.locator("#path button").count(), 2);
  before = await shown(page);
  await page.goBack();
  await settled(page, before);
  assert.equal(await page.evaluate(() => wickAsk.graph.nodes.length), 5);
  await page.locator("#search").fill("re[ad]+$");
  await page.locator("#search").press("Enter");
  await page.waitForFunction(() => /30/.test(document.getElementById("matched").textContent));
  assert.equal(await page.locator("#matched").textContent(), "30.00 %: 30 samples");
  await page.locator("#search").fill("(");
  await page.locator("#search").press("Enter");
  await page.locator("#wrong").waitFor();
});

await test("a page that asks: table, callers and callees, state in the address", async page => {
  await page.goto(ASK);
  await asked(page);
  await page.getByRole("tab", { name: "Table" }).click();
  await page.locator("#table tbody tr").first().waitFor();
  assert.deepEqual(await page.locator("#table tbody tr td:nth-child(3)").allInnerTexts(), ["idle", "read", "parse", "main"]);
  await page.getByRole("button", { name: "parse" }).click();
  await page.waitForFunction(() => wickAsk.callees.drawn > 0);
  assert.deepEqual(await page.evaluate(() => [wickAsk.callers, wickAsk.callees].map(one => one.nodes.map(node => node.name))), [["parse", "main"], ["parse", "read"]]);
  const url = page.url();
  await page.goto(LIST);
  await page.goto(url);
  await page.waitForFunction(() => globalThis.wickAsk?.callees.drawn > 0);
  assert.equal(await page.locator("#function").inputValue(), "parse");
});

const fleetShown = (page, before) => page.waitForFunction(was => globalThis.wickFleet?.shown > was, before);
const fleetCount = page => page.evaluate(() => wickFleet.shown);
const inFrame = async (page, section) => {
  const frame = await (await page.locator(`#${section} iframe`).elementHandle()).contentFrame();
  await frame.waitForFunction(() => globalThis.wickPage && wickPage.graph.drawn > 0);
  return frame;
};

if (FLEET) await test("a store: labels, heat map, flame graph of a selection", async page => {
  await page.goto(FLEET);
  await fleetShown(page, 0);
  assert.deepEqual(await page.locator("#service option").allInnerTexts(), ["all", "odd' OR 1=1 --", "web"]);
  let before = await fleetCount(page);
  await page.locator("#service").selectOption("web");
  await fleetShown(page, before);
  assert.deepEqual(await page.locator("#version option").allInnerTexts(), ["all", "41", "42"]);
  before = await fleetCount(page);
  await page.locator("#version").selectOption("42");
  await fleetShown(page, before);
  assert.match(page.url(), /\?service=web&version=42$/);
  const frame = await inFrame(page, "flame");
  await frame.waitForURL(/flame\?service=web&version=42$/);
  const box = await page.locator("#heat").boundingBox();
  before = await fleetCount(page);
  await page.mouse.move(box.x + 160 + (box.width - 160) * 0.78, box.y + 8);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 1, box.y + 8);
  await page.mouse.up();
  await fleetShown(page, before);
  const range = new URL(page.url()).searchParams;
  assert(Number(range.get("from")) > 1700003000 && Number(range.get("from")) % 60 === 0 && Number(range.get("to")) > 1700005200, page.url());
});

if (FLEET) await test("a store: the heaviest row of the heat map is the first", async page => {
  await page.goto(FLEET);
  await fleetShown(page, 0);
  const before = await fleetCount(page);
  await page.locator("#heat").click({ position: { x: 20, y: 8 } });
  await fleetShown(page, before);
  assert.match(page.url(), /\?service=web$/);
});

if (FLEET) await test("a store: difference, movers, share, and a link without the token", async page => {
  await page.goto(FLEET + "?service=web&version=41");
  await fleetShown(page, 0);
  let before = await fleetCount(page);
  await page.locator("#keep").click();
  await fleetShown(page, before);
  before = await fleetCount(page);
  await page.locator("#version").selectOption("42");
  await fleetShown(page, before);
  await inFrame(page, "compare");
  assert.match(await page.locator("#before").textContent(), /service web, version 41/);
  await page.getByRole("tab", { name: "Top movers" }).click();
  await page.locator("#movers tbody tr").first().waitFor();
  const rows = await page.locator("#movers tbody tr").allInnerTexts();
  assert.deepEqual(rows.slice(0, 2).map(row => row.split(/\s+/).at(-1)).sort(), ["idle", "read"]);
  await page.getByRole("button", { name: "read", exact: true }).click();
  await page.waitForFunction(() => wickFleet.points.length === 3);
  assert.match(await page.locator("#shared").textContent(), /^read: 53\.\d\d % of all of it, in 3 steps of 1 min$/);
  const link = await page.evaluate(() => wickFleet.link());
  assert(!link.includes(new URL(FLEET).pathname.slice(1, -1)) && link.includes("/-/?service=web&version=42&before.service=web"), link);
  await page.goto(FLEET + new URL(link).search);
  await page.waitForFunction(() => globalThis.wickFleet?.points.length === 3);
});

if (FLEET) await test("a store: a selection of nothing says so, and how to go on", async page => {
  await page.goto(FLEET + "?service=none&version=7");
  await fleetShown(page, 0);
  assert.equal(await page.locator("#nothing-of").textContent(), "Nothing was measured for this selection (service none, version 7).");
  assert(!await page.locator("#flame").isVisible());
  const before = await fleetCount(page);
  await page.getByRole("button", { name: "Select everything" }).click();
  await fleetShown(page, before);
  assert(!await page.locator("#nothing").isVisible() && await page.locator("#flame").isVisible() && !page.url().includes("service="), page.url());
});

if (EMPTY) await test("a store: nothing is in it yet", async page => {
  await page.goto(EMPTY);
  await fleetShown(page, 0);
  assert.match(await page.locator("#nothing-of").textContent(), /^Nothing is stored yet\. wick agent /);
  assert(!await page.getByRole("button", { name: "Select everything" }).isVisible());
  assert.deepEqual([await page.locator("#from").inputValue(), await page.locator("#to").inputValue()], ["", ""]);
  const before = await fleetCount(page);
  execFileSync(process.env.WICK, ["push", "-q", process.env.FIRST, process.env.EMPTY_STORE, "--set-label", "service=first", "--at", String(Math.floor(Date.now() / 1000))]);
  await fleetShown(page, before);
  assert(!await page.locator("#nothing").isVisible() && await page.locator("#flame").isVisible());
  assert.match(await page.locator("#from").inputValue(), /^20\d\d-/);
});

if (FLEET) await test("a store: on a telephone names leave room for the heat map", async page => {
  await page.setViewportSize({ width: 400, height: 800 });
  await page.goto(FLEET);
  await fleetShown(page, 0);
  const before = await fleetCount(page), box = await page.locator("#heat").boundingBox();
  await page.mouse.move(box.x + box.width * 0.35, box.y + 8);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 1, box.y + 8);
  await page.mouse.up();
  await fleetShown(page, before);
  assert(new URL(page.url()).searchParams.has("from"), page.url());
});

if (FLEET) await test("a store: a selection that is too large", async page => {
  await page.goto(FLEET + "flame?service=web&version=42&ask=1");
  await asked(page);
  assert.match(await page.locator("#about").textContent(), /^store, 798 samples/);
});

await browser.close();
