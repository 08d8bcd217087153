// The page's call tree, source, heat map and thread chooser, at all sizes.
import { assert, compare, draw, runAll, test, work } from "./harness.mjs";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { open, settle, simple, timed, view } from "./pages.mjs";

// ---- the call tree ----

const treeRows = page => page.locator("#tree-rows [role=treeitem]").evaluateAll(list => list.map(row =>
  `${"-".repeat(row.getAttribute("aria-level") - 1)}${[...row.querySelectorAll(".name > span")].map(s => s.textContent).join("")} ${[...row.querySelectorAll(".number")].map(s => s.textContent).join(" ").trim()}`));
const focused = page => page.evaluate(() => {
  const box = document.getElementById("tree-rows"), row = document.getElementById(box.getAttribute("aria-activedescendant"));
  return row && `${row.getAttribute("aria-label")} level ${row.getAttribute("aria-level")} ${row.getAttribute("aria-posinset")}/${row.getAttribute("aria-setsize")} open ${row.getAttribute("aria-expanded")}`;
});

test("call-tree", async page => {
  await open(page, simple);
  await view(page, "calltree");
  assert.deepEqual(await treeRows(page), ["▾app 100 100.00%", "-▾main 90 90.00%", "--▾parse 50 50.00% 20 20.00%", "---read 30 30.00% 30 30.00%", "--▸run 40 40.00%", "-idle 10 10.00% 10 10.00%"],
                   "the way that most was spent on is open, the heaviest first");
  await page.locator("#tree-rows").focus();
  assert.equal(await focused(page), "app, Total 100, Total 100.00% level 1 1/1 open true");
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
    return focused(page);
  };
  assert.match(await press("ArrowDown", "ArrowDown"), /^parse.* level 3 1\/2 open true/);
  assert.match(await press("ArrowLeft"), /^parse.* open false/);
  assert.match(await press("ArrowLeft"), /^main.* level 2 1\/2/, "a closed row leads to its caller");
  assert.match(await press("End"), /^idle/);
  assert.match(await press("Home"), /^app/);
  assert.match(await press("ArrowDown", "ArrowDown", "ArrowDown"), /^run.* open false/);
  assert.match(await press("*"), /^run.* open true/);
  assert.deepEqual((await treeRows(page)).slice(3), ["--▾run 40 40.00%", "---▾step 40 40.00%", "----add 25 25.00% 25 25.00%", "----▾step 15 15.00%", "-----add 15 15.00% 15 15.00%", "-idle 10 10.00% 10 10.00%"]);
  assert.match(await press("Enter"), /^run.* open false/);
  assert.match(await press("ArrowRight", "ArrowRight"), /^step.* level 4/, "a row that is open leads to what it calls");
  assert.equal(await page.locator("#details").textContent(), "step (40 samples, 40.00%; self 0)");
  await page.locator("#tree-rows .tree-row", { hasText: "idle" }).click();
  assert.match(await focused(page), /^idle/);
});

test("call-tree-up", async page => {
  await open(page, simple);
  await view(page, "calltree");
  await page.selectOption("#turn", "up");
  assert.deepEqual(await treeRows(page), ["▸add 40 40.00% 40 40.00%", "▸read 30 30.00% 30 30.00%", "▸parse 20 20.00% 20 20.00%", "▸idle 10 10.00% 10 10.00%"]);
  await page.locator("#tree-rows").focus();
  await page.keyboard.press("*");
  assert.deepEqual((await treeRows(page)).slice(0, 4), ["▾add 40 40.00% 40 40.00%", "-▾step 40 40.00%", "--▾run 25 25.00%", "---▾main 25 25.00%"]);
  assert.match(page.url(), /view=calltree.*turn=up/);
  await page.reload();
  await page.waitForFunction(() => globalThis.wickPage && wickPage.calltree.list.length === 4);
});

test("call-tree-search", async page => {
  await open(page, simple);
  await view(page, "calltree");
  await page.fill("#search", "add|idle");
  assert.equal(await page.locator("#matched").textContent(), "Matched: 50.0%");
  const found = [];
  for (let i = 0; i < 4; i++) {
    await page.locator("#next").click();
    found.push((await focused(page)).replace(/,.* level/, ""));
  }
  assert.deepEqual(found, ["add 5 1/2 open null", "add 6 1/1 open null", "idle 2 2/2 open null", "add 5 1/2 open null"], "in the order of rows, which it opens, and round");
  await page.locator("#previous").click();
  assert.match(await focused(page), /^idle/);
  assert.equal(await page.locator("#tree-rows .found").count(), 3);
  await page.locator("#tree-rows .tree-row.found").first().click({ button: "right" });
  await page.locator("#menu button", { hasText: "Callers and callees" }).click();
  assert.equal(await page.evaluate(() => wickPage.choice.view + wickPage.choice.middle), "sandwichadd");
});

// Only the rows in sight are in the document, however many are open; a deep stack is no matter.
test("call-tree-large", async page => {
  const lines = Array.from({ length: 30000 }, (_, i) => `app;a${i % 7};b${i % 1009};c${i} ${1 + i % 5}`);
  lines.push(Array.from({ length: 3000 }, (_, i) => "deep" + i).join(";") + " 100000");
  await open(page, draw(lines.join("\n") + "\n", "html", "--html"));
  await view(page, "calltree");
  await page.locator("#tree-rows").focus();
  assert.equal(await page.evaluate(() => wickPage.calltree.list.length), 3001);
  await page.keyboard.press("ArrowLeft"); // of the deep stack
  await page.keyboard.press("End");
  await page.keyboard.press("*");
  const count = await page.evaluate(() => wickPage.calltree.list.length);
  assert.ok(count > 35000, String(count));
  for (const key of ["End", "PageUp", "Home", "PageDown", "End"]) {
    await page.keyboard.press(key);
    assert.ok(await page.locator("#tree-rows .tree-row").count() < 100);
    assert.ok(await page.locator("#tree-rows .chosen").isVisible(), key);
  }
});

// The fields that choose a function are as wide as a telephone.
test("fields-on-a-telephone", async page => {
  await page.setViewportSize({ width: 390, height: 760 });
  await open(page, draw("main;parse 400000\nmain;read 100000\n", "html", "--html"));
  await view(page, "sandwich");
  const box = await page.locator("#middle").boundingBox();
  assert.ok(box.width > 280 && box.x + box.width <= 390, JSON.stringify(box));
});

// Indentation leaves room for the name, in a narrow window, too.
test("call-tree-of-a-deep-stack", async page => {
  await open(page, draw(Array.from({ length: 200 }, (_, i) => "deep" + i).join(";") + " 1000\n", "html", "--html"));
  for (const width of [1220, 390]) {
    await page.setViewportSize({ width, height: 760 });
    await view(page, "calltree");
    await page.locator("#tree-rows").focus();
    for (const key of ["Home", "End"]) {
      await page.keyboard.press(key);
      // In one step: rows are replaced when they scroll, and a row that is gone has no width.
      const rooms = await page.evaluate(() => [...document.querySelectorAll("#tree-rows .name")].map(cell => cell.clientWidth - parseFloat(getComputedStyle(cell).paddingLeft)));
      assert.ok(rooms.length > 10 && rooms.every(room => room >= 120), `${width} ${key}: ${rooms}`);
    }
  }
});

test("call-tree-diff", async page => {
  await open(page, compare("a;b 60\na;c 40\n", "a;b 20\na;d 80\n", "html", "--html"));
  await view(page, "calltree");
  await page.locator("#tree-rows").focus();
  await page.keyboard.press("*");
  assert.deepEqual(await treeRows(page), ["▾a 100 100.00% 100.00% 0.00", "-d 80 80.00% 0.00% +80.00 80 80.00%", "-b 20 20.00% 60.00% -40.00 20 20.00%", "-c 0 0.00% 40.00% -40.00"]);
});

// ---- source and code ----

// Each page that is touched first is one sample: 300 on one line, 100 in a function that is inlined into another.
const touchSource = `#include <sys/mman.h>
static inline void one(volatile char *at) {
    at[8] = 2;
}
__attribute__((noinline)) int touch(volatile char *at, int pages) {
    int done = 0;
    for (int i = 0; i < pages; i++, done++)
        if (i % 4)
            at[4096L * i] = 1; /* \u202e & <b> */
        else
            one(at + 4096L * i);
    return done;
}
int main(void) {
    char *at = mmap(0, 400 * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(at, 400 * 4096L, MADV_NOHUGEPAGE);
    return touch(at, 400) != 400;
}
`;
function touched() {
  const folder = join(work, "touch"), wick = (...words) => spawnSync(process.env.WICK, words, { encoding: "utf8", cwd: folder });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "touch.c"), touchSource);
  const built = spawnSync("gcc", ["-O2", "-g", "touch.c", "-o", "touch"], { cwd: folder, encoding: "utf8" });
  if (built.status !== 0) return { why: `gcc: ${built.stderr}` };
  const made = wick("record", "-q", "-e", "page-faults", "-c", "1", "-g", "fp", "-u", "-o", "touch.data", "--", "./touch");
  return made.status === 0 ? { folder, wick } : { why: made.stderr.trim() };
}
const sourceRows = (page, id) => page.locator(`#${id} .source-row`).evaluateAll(list => list.map(row => [...row.children].filter(cell => cell.className !== "arrows").map(cell => cell.textContent.trim()).join("|")));

const touch = touched();
if (touch.why) console.log(`skip browser/views-source: ${touch.why.split("\n")[0]}`);
else test("source", async page => {
  const html = (name, ...words) => {
    const done = touch.wick("flame", "-q", "--html", "-o", name + ".html", ...words);
    assert.equal(done.status, 0, done.stderr);
    return "file://" + join(touch.folder, name + ".html");
  };
  assert.equal(touch.wick("save", "-q", "--source", ".", "--code", "touch.data", "-o", "touch.wick").status, 0);
  assert.equal(touch.wick("save", "-q", "touch.data", "-o", "plain.wick").status, 0);
  // What wick annotate says of the same function.
  const told = touch.wick("annotate", "-q", "touch.data", "touch").stdout;
  const lines = Object.fromEntries([...told.matchAll(/^ *(?:([\d.]+) %)? +([\d.]+) % +(\d+) {2}/gm)].map(([, self, total, line]) => [line, [self || "", total]]));
  const code = [...told.matchAll(/^ *([\d.]+) % +([0-9a-f]+) {2}(\w+)/gm)].map(([, self, address, name]) => `${self}% ${address} ${name}`);
  assert.ok(lines[9] && lines[11] && code.length >= 2, told);
  for (const [name, url] of [["given", html("given", "--source", ".", "touch.data")], ["saved", html("saved", "touch.wick")]]) {
    await open(page, url);
    await view(page, "source");
    assert.equal(await page.inputValue("#source-name"), "touch", "what most was spent in");
    const shown = await sourceRows(page, "source-lines"), row = number => shown.find(text => text.split("|")[2] === number);
    const percent = text => text && text + "%";
    assert.equal(row("9"), `${percent(lines[9][0])}|${percent(lines[9][1])}|9|at[4096L * i] = 1; /* \\u202e & <b> */`, name);
    assert.equal(row("11"), `|${percent(lines[11][1])}|11|one(at + 4096L * i);`, "what was inlined belongs to the line that called it");
    assert.equal(row("7"), "||7|for (int i = 0; i < pages; i++, done++)");
    const rows = await sourceRows(page, "source-code");
    assert.deepEqual(rows.filter(text => /^[\d.]+%/.test(text)).map(text => text.replace(/^(.*?)\|(.*?)\|(\w+).*/, "$1 $2 $3")), code);
    const arrows = await page.locator("#source-code .arrows").allTextContents();
    assert.ok(arrows.some(text => text.includes("▸")) && arrows.some(text => /[╭╰]/.test(text)), arrows.join("\n"));
    assert.match(await page.locator("#source-code .source-row[title^=jumps]").first().getAttribute("title"), /^jumps to [0-9a-f]+$/);
    await page.fill("#source-name", "one");
    await page.keyboard.press("Enter");
    assert.match((await sourceRows(page, "source-lines")).find(text => text.split("|")[2] === "3"), /^[\d.]+%\|[\d.]+%\|3\|at\[8\] = 2;/);
    assert.match((await sourceRows(page, "source-code")).join(), /not in this page/, "it has no code of its own");
    await page.fill("#source-name", "nothing");
    await page.keyboard.press("Enter");
    assert.equal(await page.getAttribute("#source-name", "aria-invalid"), "true");
  }
  await open(page, html("plain", "plain.wick"));
  assert.equal(await page.locator("#views [data-view=source]").count(), 0, "nothing is in the page unless it was asked for");
  assert.equal(touch.wick("flame", "--source", ".", "touch.data").status, 2, "a picture has no lines");
});

test("jump-arrows", async page => {
  await open(page, simple);
  const arrows = targets => page.evaluate(list => wickPage.jumpArrows(list), targets);
  assert.deepEqual(await arrows([-1, -1]), ["", ""]);
  assert.deepEqual(await arrows([2, -1, -1]), ["╭──", "│  ", "╰─▸"]);
  assert.deepEqual(await arrows([-1, -1, 0]), ["╭─▸", "│  ", "╰──"]);
  assert.deepEqual(await arrows([4, 3, -1, -1, -1]), ["╭───", "│╭──", "││  ", "│╰─▸", "╰──▸"]);
  assert.equal((await arrows(Array.from({ length: 40 }, (_, i) => 79 - i).concat(new Array(40).fill(-1)))).every(text => text.length === 10), true, "no more lanes than fit");
});

// ---- time ----

const sampleText = (comm, tid, seconds, frames) => `${comm} 10/${tid} [000] ${(100 + seconds).toFixed(6)}: 1000000 cpu-clock: \n` +
  frames.map((name, i) => `\t    ${(4096 + i).toString(16)} ${name}+0x1 (/bin/app)\n`).join("") + "\n";

test("heat-map", async page => {
  // Four seconds, a sample each 20 ms; in the third one, from 400 ms on, three as many of another function.
  let text = "";
  for (let i = 0; i < 200; i++) {
    const at = i / 50 + 0.001, isBusy = i >= 120 && i < 130;
    for (let k = 0; k < (isBusy ? 4 : 1); k++) text += sampleText("main", 10, at + k / 1000, isBusy ? ["burst", "main"] : ["calm", "main"]);
  }
  await open(page, draw(text, "html", "--html"));
  await view(page, "heat");
  const counts = await page.evaluate(() => [...wickPage.heat.counts]);
  assert.equal(counts.length, 200);
  assert.deepEqual([counts[0], counts[119], counts[120], counts[129], counts[130]], [1, 1, 4, 4, 1]);
  const cellAt = cell => page.evaluate(one => {
    const h = wickPage.heat, box = h.canvas.getBoundingClientRect(), [x, y] = h.corner(one);
    return {x: box.left + x + h.cellWidth / 2, y: box.top + y + h.cellHeight / 2};
  }, cell);
  const from = await cellAt(120), to = await cellAt(129);
  await page.mouse.move(from.x, from.y);
  assert.match(await page.locator("#heat-about").textContent(), /^2\.40 s to 2\.42 s: 4 samples/);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 3 });
  await page.mouse.up();
  await settle(page);
  const range = await page.evaluate(() => wickPage.choice.time.map(t => t / 1e9));
  assert.ok(Math.abs(range[0] - 2.4) < 1e-6 && Math.abs(range[1] - 2.6) < 1e-6, String(range));
  await view(page, "table");
  assert.deepEqual(await page.locator("#table td.name").allTextContents(), ["burst", "main"], "every view follows");
  await view(page, "timeline");
  assert.deepEqual((await page.evaluate(() => wickPage.timeline.span)).map(t => Math.round(t / 1e7)), [240, 260], "the axis of the timeline, too");
  await view(page, "heat");
  // The same by keyboard, and by two clicks.
  await page.locator("#filters button").click();
  assert.equal(await page.evaluate(() => wickPage.choice.time), null);
  await page.locator("#heat-map").focus();
  for (const key of ["Home", "ArrowRight", "ArrowUp", "Enter", "ArrowRight", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  assert.deepEqual((await page.evaluate(() => wickPage.choice.time)).map(t => Math.round(t / 1e6)), [1020, 2020]);
  const a = await cellAt(3), b = await cellAt(1);
  await page.mouse.click(a.x, a.y);
  await page.mouse.click(b.x, b.y);
  assert.deepEqual((await page.evaluate(() => wickPage.choice.time)).map(t => Math.round(t / 1e6)), [20, 80], "in any order");
});

test("five-thousand-threads", async page => {
  let text = "";
  const count = process.env.SANITIZED ? 1000 : 5000;
  for (let i = 0; i < count; i++) for (let k = 0; k < 1 + i % 3; k++) text += sampleText(`pool${i}-x`, 1000 + i, (i * 3 + k) / 10000, ["work" + i % 7, "main"]);
  text += sampleText("busiest", 7, 0.5, ["work", "main"]).repeat(9);
  await open(page, draw(text, "html", "--html"));
  await page.locator("#thread").click();
  assert.ok(await page.locator("#thread-rows [role=option]").count() < 40, "only the rows in sight");
  assert.equal(await page.locator("#thread-about").textContent(), `${(count + 1).toLocaleString("en")} of ${(count + 1).toLocaleString("en")} threads`);
  assert.match(await page.locator("#thread-rows [role=option]").nth(1).textContent(), /^busiest 10\/7/, "by CPU time");
  await page.selectOption("#thread-order", "name");
  assert.match(await page.locator("#thread-rows [role=option]").nth(2).textContent(), /^pool0-x/);
  await page.fill("#thread-filter", "POOL77");
  assert.match(await page.locator("#thread-about").textContent(), /^1?11? of /);
  await page.keyboard.press("ArrowDown");
  const active = await page.getAttribute("#thread-filter", "aria-activedescendant");
  assert.equal(await page.getAttribute("#" + active, "aria-selected"), "true");
  const wanted = await page.locator("#" + active + " span").first().textContent();
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await page.evaluate(() => wickPage.choice.thread), wanted);
  assert.equal(await page.locator("#thread").textContent(), wanted);
  assert.equal(await page.evaluate(() => document.activeElement.id), "thread");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  assert.ok(await page.locator("#thread-list").isHidden());
  // The lanes: as many as there is room for, all within reach.
  await view(page, "timeline");
  const lanes = () => page.evaluate(() => ({ all: wickPage.timeline.threads.length, first: wickPage.timeline.first, shown: wickPage.timeline.lanes, chosen: wickPage.timeline.chosen, name: wickPage.timeline.threads[wickPage.timeline.chosen].name }));
  let now = await lanes();
  assert.ok(now.all === count + 1 && now.shown > 4 && now.shown < 60 && now.name === wanted, "the chosen thread's lane: " + JSON.stringify(now));
  await page.locator("#lanes").focus();
  await page.keyboard.press("End");
  now = await lanes();
  assert.ok(now.chosen === count && now.first === count + 1 - now.shown, JSON.stringify(now));
  await page.evaluate(() => document.getElementById("lanes-box").scrollTop = 2000);
  await settle(page);
  assert.equal((await lanes()).first, 100, "it scrolls");
  await page.selectOption("#lane-order", "start");
  await page.fill("#lane-filter", "pool42");
  now = await lanes();
  assert.ok(now.all < 120 && now.name === "pool42-x 10/1042", JSON.stringify(now));
  await page.fill("#lane-filter", "none of them");
  await settle(page);
  await page.fill("#lane-filter", "");
});

// What ran and what waited differ by colour, in the page and in the picture, and both say so.
test("wall-colours", async page => {
  const recording = readFileSync(new URL("../../fuzz/seeds/script/waits.data", import.meta.url));
  const isBlue = colour => {
    const [red, , blue] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
    return blue > red;
  };
  await open(page, draw(recording, "html", "--html", "--wall", "--kallsyms", "/dev/null"));
  assert.ok(await page.locator("#legend").isVisible());
  for (const name of ["flame", "reversed"]) {
    await view(page, name);
    const frames = await page.evaluate(() => {
      const g = wickPage.graph, p = g.panes[0], real = wickPage.model.about.places.length, list = [];
      for (let n = 1; n < p.shape.count; n++) if (p.shape.total[n] && p.shape.place[n] < real) list.push([p.shape.waits[n] / p.shape.total[n], g.colour(p, n)]);
      return list;
    });
    assert.ok(frames.some(([part]) => part > 0.5) && frames.some(([part]) => part < 0.5), JSON.stringify(frames));
    for (const [part, colour] of frames) assert.equal(isBlue(colour), part > 0.5, `${name}: ${part} ${colour}`);
  }
  await page.selectOption("#times", "on-cpu");
  await settle(page);
  assert.ok(await page.locator("#legend").isHidden());
  await page.goto(draw(recording, "svg", "--wall", "--kallsyms", "/dev/null"));
  assert.match(await page.locator("#subtitle").textContent(), /^orange: mostly running, blue: mostly waiting$/);
  const fills = await page.locator("#frames > g > rect").evaluateAll(list => list.map(rect => rect.getAttribute("fill")));
  assert.ok(fills.slice(1).some(isBlue) && !fills.slice(1).every(isBlue), fills.join());
});

// ---- sizes ----

// Nothing is wider than the window, no column stands on another, and every view can be reached by the keyboard alone.
for (const [width, height] of [[390, 760], [800, 700], [3840, 2160]])
test(`size-${width}`, async page => {
  await page.setViewportSize({ width, height });
  await open(page, timed);
  await page.locator("#views [aria-selected=true]").focus();
  for (const name of await page.locator("#views button").evaluateAll(list => list.map(tab => tab.dataset.view))) {
    assert.equal(await page.evaluate(() => wickPage.choice.view), name, "by arrow keys");
    await settle(page);
    const wrong = await page.evaluate(() => {
      const list = [], box = one => one.getBoundingClientRect();
      if (document.documentElement.scrollWidth > innerWidth) list.push(`${document.documentElement.scrollWidth} px wide`);
      for (const row of [...document.querySelectorAll("#table tr, .tree-row, .bar, #controls, #tools")].slice(0, 60)) {
        const cells = [...row.children].filter(cell => box(cell).width && /^(static|sticky)$/.test(getComputedStyle(cell).position) && !getComputedStyle(row).flexWrap.startsWith("wrap"));
        for (let i = 1; i < cells.length; i++) if (box(cells[i]).left < box(cells[i - 1]).right - 1) list.push(`${cells[i - 1].textContent} and ${cells[i].textContent}`);
      }
      for (const one of document.querySelectorAll("nav button, header button, header select, .bar input, .bar select, canvas")) {
        const place = box(one);
        if (place.width && (place.left < -1 || place.right > innerWidth + 1)) list.push(`${one.id || one.textContent} is outside`);
      }
      return list;
    });
    assert.deepEqual(wrong, [], name);
    const roles = await page.evaluate(() => [...document.querySelectorAll("[role=tabpanel]:not([hidden])")].map(panel => panel.id + (panel.getAttribute("aria-label") || panel.getAttribute("aria-labelledby") ? "" : " has no label")));
    assert.ok(roles.length === 1 && !roles[0].includes("no label"), roles.join());
    await page.keyboard.press("ArrowRight");
  }
});

// A telephone shows the profile; what can be chosen opens on demand, and says that something was.
test("options-on-demand", async page => {
  await page.setViewportSize({ width: 390, height: 760 });
  await open(page, timed);
  const top = () => page.evaluate(() => document.querySelector("main").getBoundingClientRect().top / innerHeight), options = page.locator("#options");
  assert.ok(await top() < 0.25, `the profile begins at ${await top()}`);
  assert.deepEqual([await page.locator("#group").isVisible(), await page.locator("#search").isVisible(), await page.locator("#save-svg").isVisible()], [false, true, false]);
  await options.focus();
  await page.keyboard.press("Enter");
  assert.deepEqual([await page.locator("#group").isVisible(), await page.locator("#save-svg").isVisible(), await options.getAttribute("aria-expanded")], [true, true, "true"]);
  assert.equal(await options.getAttribute("class") || "", "");
  await page.selectOption("#group", "thread");
  assert.equal(await options.getAttribute("class"), "set");
  await options.click();
  assert.deepEqual([await page.locator("#group").isVisible(), await options.getAttribute("aria-expanded")], [false, "false"]);
  await page.setViewportSize({ width: 1220, height: 760 });
  assert.deepEqual([await page.locator("#group").isVisible(), await options.isVisible()], [true, false], "a large window has room for all");
});

test("diff-table-on-a-telephone", async page => {
  await page.setViewportSize({ width: 390, height: 760 });
  await open(page, compare("main;parse 400000\nmain;read 100000\n", "main;parse 300000\nmain;read 900000\n", "html", "--html"));
  await view(page, "table");
  const rows = await page.locator("#table tr").evaluateAll(list => list.map(row => [...row.children].map(cell => cell.getBoundingClientRect()).filter(box => box.width).map(box => [box.left, box.right])));
  assert.ok(rows.length === 4 && rows.every(row => row.length === 3 && row.every(([left, right], i) => right <= 391 && (!i || left >= row[i - 1][1] - 1))), JSON.stringify(rows));
});

test("table-of-long-names", async page => {
  const long = `ns::Executor<${"std::allocator<char>, ".repeat(9)}true>::run`;
  await page.setViewportSize({ width: 390, height: 760 });
  await open(page, draw(`main;${long} 1234567890\nmain;short 2345678901\n`, "html", "--html"));
  await view(page, "table");
  const row = page.locator("#table tbody tr").filter({ hasText: "::run" });
  assert.match(await row.locator("td.name").textContent(), /^ns::Exec.*::run$/, "the end of the name survives");
  assert.equal(await row.locator("td.name").getAttribute("title"), long);
  const boxes = await row.locator("td").evaluateAll(list => list.map(cell => cell.getBoundingClientRect()).filter(box => box.width).map(box => [box.left, box.right]));
  assert.ok(boxes.length === 3 && boxes.every(([left, right], i) => right <= 391 && (!i || left >= boxes[i - 1][1] - 1)), JSON.stringify(boxes));
  await page.setViewportSize({ width: 1220, height: 760 });
  await page.waitForFunction(() => [...document.querySelectorAll("#table td.name")].some(cell => cell.textContent === "ns::Executor‹…›::run"));
  assert.equal(await row.locator("td.wide").first().isVisible(), true);
});

// Names that do not fit lose their middle, never the function's own name: in the status line, and in the call tree on a telephone.
test("own-names-survive", async page => {
  const long = `ns::Executor<${"std::allocator<char>, ".repeat(12)}true>::run_once_more`;
  await open(page, draw(`main;${long};java.util.concurrent.ThreadPoolExecutor.runWorker 7\nmain;short 1\n`, "html", "--html"));
  await view(page, "calltree");
  const named = text => page.locator("#tree-rows [role=treeitem]").filter({ hasText: text });
  await named("run_once_more").click();
  const status = page.locator("#details");
  assert.equal(await status.textContent(), "ns::Executor‹…›::run_once_more (7 samples, 87.50%; self 0)");
  await page.setViewportSize({ width: 390, height: 760 });
  await page.waitForFunction(() => /…/.test(document.querySelector("#tree-rows").textContent.replace("‹…›", "")));
  for (const own of ["run_once_more", "runWorker"]) {
    const name = named(own).locator(".name");
    assert.match(await name.textContent(), new RegExp(`….*${own}$`));
    assert.ok(await name.evaluate(cell => cell.scrollWidth <= cell.clientWidth), "it fits");
  }
});

test("unpacking", async page => {
  const lines = Array.from({ length: 60000 }, (_, i) => `app;a${i % 7};b${i % 1009};c${i} 1`).join("\n") + "\n";
  const said = page.addInitScript(() => new MutationObserver(() => document.getElementById("unpacking") && (globalThis.wasSaid = true)).observe(document, { childList: true, subtree: true }));
  await said;
  await open(page, draw(lines, "html", "--html"));
  assert.equal(await page.evaluate(() => globalThis.wasSaid), true);
  assert.equal(await page.locator("#unpacking").count(), 0);
});

// ---- allocations ----

// Two threads allocate 1000 bytes a millisecond; what `parse` allocated is freed 10 ms later, what `work` did never.
function allocations() {
  const sample = (event, tid, ms, frame) => `${tid === 10 ? "main" : "worker"} 10/${tid} [000] ${(100 + ms / 1000).toFixed(6)}: 1000 ${event}: \n\t    1000 malloc+0x1 (/lib/libc.so)\n\t    2000 ${frame}+0x1 (/bin/app)\n\n`;
  const list = [];
  for (let ms = 0; ms < 40; ms++) {
    list.push([ms, "allocated", 10, "parse"], [ms + 10, "freed", 10, "parse"]);
    for (const event of ["allocated", "live"]) list.push([ms + 0.5, event, 11, "work"]);
  }
  return list.sort((a, b) => a[0] - b[0]).map(([ms, event, tid, frame]) => sample(event, tid, ms, frame)).join("");
}

test("lifetimes", async page => {
  const data = join(work, "lifetimes.data"), html = join(work, "lifetimes.html"), wick = (...words) => spawnSync(process.env.WICK, words, { encoding: "utf8" });
  const done = wick("record", "-q", "--heap", "--every", "1", "-o", data, "--", "/bin/ls", "/");
  assert.equal(done.status, 0, done.stderr);
  wick("flame", "-q", "--html", data, "-o", html);
  const asked = wick("report", "-q", "--by", "lifetime", "--csv", data).stdout.split("\n").slice(1).filter(line => line).map(line => line.split(","));
  const column = wick("report", "-q", "--by", "lifetime", "--csv", data).stdout.split("\n")[0].split(",").findIndex(name => name === "self_bytes" || name === "self_weight");
  const expected = new Map(asked.map(cells => [cells[0].replaceAll("\"", ""), +cells[column]]));
  await open(page, "file://" + html);
  await view(page, "lifetimes");
  const rows = () => page.locator("#lifetimes tbody tr").evaluateAll(list => list.map(row => [...row.children].map(cell => cell.textContent)));
  const shown = (await rows()).filter(([bytes]) => bytes !== "0 bytes").map(([bytes, , name]) => [name, +bytes.replace(/[^0-9]/g, "")]);
  assert.ok(column > 0 && shown.length > 1, JSON.stringify(asked));
  assert.deepEqual(new Map(shown), expected, "as wick report --by lifetime has them");
  // A function that allocates: its own, as wick report --lifetimes has them.
  const name = await page.evaluate(() => wickPage.model.functions.find(one => one === "calloc") || "malloc");
  await page.locator("#lifetimes-name").fill(name);
  await page.keyboard.press("Enter");
  await page.waitForFunction(one => wickPage.choice.middle === one, name);
  const count = wick("report", "-q", "--lifetimes", name, data).stdout.trim().split("\n").length - 1;
  assert.equal((await rows()).filter(([bytes]) => bytes !== "0 bytes").length, count, "of a function");
  await page.locator("#lifetimes-name").fill("no such function");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#lifetimes-name").getAttribute("aria-invalid"), "true");
  // Every block ends in malloc; the table has the functions that wanted them.
  await view(page, "table");
  const own = await page.locator("#table tbody tr").evaluateAll(list => list.map(row => [row.lastChild.title, row.firstChild.textContent]));
  assert.ok(own.every(([one, self]) => !/alloc/.test(one) || self === "0" || one === "calloc"), JSON.stringify(own.slice(0, 5)));
});

test("growth", async page => {
  await open(page, draw(allocations(), "html", "--html", "--event", "all"));
  await view(page, "timeline");
  const lanes = () => page.evaluate(() => wickPage.timeline.threads.map(thread => {
    const { alive, peak } = wickPage.timeline.growth(thread, 4);
    return `${thread.name}: ${[...alive].join(" ")}, at most ${peak}`;
  }));
  assert.deepEqual(await lanes(), ["all threads: 22000 35000 47000 40000, at most 50000", "main 10/10: 10000 10000 10000 0, at most 10000", "worker 10/11: 12000 25000 37000 40000, at most 40000"],
    "bytes alive at the end of each quarter");
  await page.evaluate(() => location.hash = "view=timeline&focus=work");
  await settle(page);
  assert.deepEqual((await lanes()).map(line => line.split(":")[0]), ["all threads", "worker 10/11"], "by the function in focus");
  assert.match(await page.locator("#range").textContent(), /Bytes alive that work allocated/);
  // Allocated in this time, and never freed.
  await page.evaluate(() => location.hash = `event=live&time=${encodeURIComponent("[10000000,20000000]")}`);
  await settle(page);
  const total = await page.evaluate(() => wickPage.graph.panes[0].shape.total[0]);
  assert.equal(total, 10000);
});

test("estimates", async page => {
  await open(page, draw(allocations(), "html", "--html", "--event", "all"));
  assert.doesNotMatch(await page.locator("#details").textContent(), /±/);
  await page.evaluate(() => (wickPage.model.about.estimated = 1000, location.hash = "event=live"));
  await settle(page);
  await page.locator("#canvas").focus();
  await page.keyboard.press("ArrowUp");
  await settle(page);
  assert.match(await page.locator("#details").textContent(), /40 samples, at most ±15\.8%/);
  // A count has no such bound: one sample of a small block stands for many.
  const counted = await page.evaluate(() => {
    const units = wickPage.model.series.map(one => one.unit);
    wickPage.model.series.forEach(one => one.unit = "count");
    wickPage.graph.events.tell({ pane: wickPage.graph.panes[0], node: 0 });
    wickPage.model.series.forEach((one, i) => one.unit = units[i]);
    return document.getElementById("details").textContent;
  });
  assert.match(counted, /40 samples\)/);
  // Where the tree is turned round, too. Each sample weighs 1000 bytes.
  for (const [shown, frames] of [["reversed", ["malloc", "parse", "work"]], ["sandwich&middle=malloc", ["malloc", "parse", "work"]], ["sandwich&middle=work", ["work", "malloc"]]]) {
    await page.evaluate(hash => location.hash = hash, "event=allocated&view=" + shown);
    await settle(page);
    const told = await page.evaluate(() => wickPage.graph.panes.flatMap(pane => Array.from({ length: pane.shape.count }, (_, node) => {
      wickPage.graph.events.tell({ pane, node });
      return [wickPage.graph.name(pane, node), pane.shape.total[node] / 1000, document.getElementById("details").textContent];
    })));
    assert.ok(frames.every(name => told.some(([found]) => found === name)), JSON.stringify(told));
    for (const [name, samples, text] of told)
      assert.ok(text.includes(`; ${samples} samples, at most ±${(100 / Math.sqrt(samples)).toFixed(1)}%)`), `${shown}: ${name}: ${text}`);
  }
});

await runAll("views");
