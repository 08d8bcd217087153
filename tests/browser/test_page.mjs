// The page in a browser: every view, search, keyboard, state, threads and time, a million nodes, names that mean harm.
import { assert, chromiumIsEnough, compare, contrast, draw, hostile, inFirefox, palettes, runAll, shownName, test, work } from "./harness.mjs";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chooseThread, manyNames, simple, timed, open, settle, view, spot, click, saved, details, matched, names } from "./pages.mjs";

test("flame", async page => {
  await open(page, simple);
  assert.deepEqual(await names(page), ["all 100", "-app 100", "--idle 10", "--main 90", "---parse 50", "----read 30", "---run 40", "----step 40",
                                       "-----add 25", "-----step 15", "------add 15"]);
  assert.ok((await spot(page, "main")).y < (await spot(page, "app")).y, "the root is at the bottom");
  await view(page, "icicle");
  assert.ok((await spot(page, "main")).y > (await spot(page, "app")).y, "and at the top");
});

test("zoom", async page => {
  await open(page, simple);
  await click(page, "run");
  const whole = await page.evaluate(() => wickPage.graph.width);
  assert.ok(Math.abs((await spot(page, "run")).width - whole) < 1);
  assert.equal(await spot(page, "idle"), null);
  await click(page, "main");
  await page.locator("#back").click();
  await settle(page);
  assert.ok(Math.abs((await spot(page, "run")).width - whole) < 1, "back");
  await page.locator("#reset").click();
  await settle(page);
  assert.ok(Math.abs((await spot(page, "run")).width - whole * 0.4) < 1, "reset");
  assert.equal(await page.locator("#reset").isVisible(), false);
});

test("pan", async page => {
  await open(page, simple);
  const at = await spot(page, "main");
  await page.mouse.move(at.x, at.y);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -600);
  await page.keyboard.up("Control");
  await settle(page);
  const window1 = await page.evaluate(() => ({...wickPage.graph.panes[0], shape: 0}));
  assert.ok(window1.to - window1.from < 60, "the wheel zooms");
  await page.mouse.down();
  await page.mouse.move(at.x + 200, at.y, { steps: 4 });
  await page.mouse.up();
  await settle(page);
  const window2 = await page.evaluate(() => ({...wickPage.graph.panes[0], shape: 0}));
  assert.ok(window2.from < window1.from && Math.abs((window2.to - window2.from) - (window1.to - window1.from)) < 1e-6, "a drag moves");
});

test("reversed", async page => {
  await open(page, simple);
  await view(page, "reversed");
  const list = await names(page);
  assert.deepEqual(list.filter(line => /^-[^-]/.test(line)), ["-add 40", "-read 30", "-parse 20", "-idle 10"]);
  assert.deepEqual(list.slice(1, 8), ["-add 40", "--step 40", "---run 25", "----main 25", "-----app 25", "---step 15", "----run 15"]);
});

test("sandwich", async page => {
  await open(page, simple);
  await view(page, "table");
  await page.locator("#table td.name button", { hasText: /^step$/ }).click();
  await settle(page);
  assert.deepEqual(await names(page, 0), ["all 40", "-step 40", "--run 40", "---main 40", "----app 40"]);
  assert.deepEqual(await names(page, 1), ["all 40", "-step 40", "--add 25", "--step 15", "---add 15"]);
  assert.equal(await page.inputValue("#middle"), "step");
  assert.deepEqual(await page.locator("#middles option").evaluateAll(list => list.map(o => o.value).slice(0, 2)), ["add", "read"], "what most was spent in is offered");
  await page.fill("#middle", "none");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute("#middle", "aria-invalid"), "true");
  await page.fill("#middle", "parse");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.deepEqual(await names(page, 1), ["all 50", "-parse 50", "--read 30"]);
  assert.equal(await page.getAttribute("#middle", "aria-invalid"), null);
  await view(page, "flame");
  assert.ok(await page.locator("#middle-bar").isHidden());
});

test("table", async page => {
  await open(page, simple);
  await view(page, "table");
  const rows = () => page.locator("#table tbody tr").evaluateAll(list => list.map(tr => [...tr.cells].map(td => td.textContent).join(" ").replace(/\s+/g, " ")));
  assert.deepEqual((await rows())[0], "40 40.00% 40 40.00% add");
  assert.ok((await rows()).includes("0 0.00% 40 40.00% step"), "recursion is counted once");
  await page.locator("#table th button", { hasText: "Total" }).first().click();
  assert.match((await rows())[0], /^0 0\.00% 100 100\.00% app$/);
  await page.locator("#table th button", { hasText: "Function" }).click();
  assert.match((await rows())[0], /add$/);
  await page.fill("#filter", "^re");
  assert.equal((await rows()).length, 1);
  await page.fill("#filter", "nobody");
  assert.deepEqual(await rows(), ["No function matches the filter."]);
  await page.fill("#filter", "(");
  assert.equal(await page.getAttribute("#filter", "aria-invalid"), "true");
  await page.fill("#filter", "");
  for (const by of ["object", "category", "thread"]) {
    await page.selectOption("#by", by);
    const self = (await rows()).reduce((sum, row) => sum + +row.split(" ")[0], 0);
    assert.equal(self, 100, by + " adds up");
  }
});

test("threads", async page => {
  await open(page, timed);
  assert.deepEqual((await names(page)).filter(line => /^-[^-]/.test(line)), ["-main 60000000", "-worker 20000000"]);
  await page.selectOption("#weight", "samples");
  await settle(page);
  assert.deepEqual((await names(page)).filter(line => /^-[^-]/.test(line)), ["-main 60", "-worker 20"]);
  await chooseThread(page, "worker 10/11");
  await settle(page);
  assert.deepEqual(await names(page), ["all 20", "-worker 20", "--thread 20", "---work 20", "----hash 20"]);
  await page.selectOption("#group", "");
  await settle(page);
  assert.deepEqual(await names(page), ["all 20", "-thread 20", "--work 20", "---hash 20"]);
});

test("timeline", async page => {
  await open(page, timed);
  await page.selectOption("#weight", "samples");
  await view(page, "timeline");
  const chart = await page.evaluate(() => {
    const p = wickPage.chart.panes[0], s = p.shape, list = [];
    for (let n = 1; n < s.count; n++) list.push(`${wickPage.chart.name(p, n)} ${Math.round(s.left[n] / 1e6)}+${Math.round(s.size[n] / 1e6)}`);
    return list;
  });
  assert.deepEqual(chart, ["main 0+60", "parse 0+30", "read 0+30", "run 30+30", "step 30+30", "add 30+30"]);
  const box = await page.locator("#lanes").boundingBox(), at = part => box.x + 190 + (box.width - 190) * part;
  await page.mouse.move(at(0.001), box.y + 5);
  await page.mouse.down();
  await page.mouse.move(at(0.25), box.y + 5, { steps: 3 });
  await page.mouse.up();
  await settle(page);
  await view(page, "flame");
  const first = (await names(page))[0];
  assert.ok(/^all 1[3-7]$/.test(first), "the other views follow: " + first);
  assert.ok(!(await names(page)).some(line => line.includes("add")), "only what ran then");
  await page.locator("#filters button").click();
  await settle(page);
  assert.equal((await names(page))[0], "all 80");
  await view(page, "timeline");
  await page.locator("#lanes").focus();
  await page.keyboard.press("ArrowDown");
  await settle(page);
  assert.ok(await page.evaluate(() => wickPage.chart.panes[0].shape.place.some(p => p >= 0 && wickPage.model.places[p].name === "hash")), "the other thread");
});

// What waited is as long in the timeline as it waited, and the lanes tell it from what ran.
test("timeline-range-by-keyboard", async page => {
  const range = () => page.evaluate(() => wickPage.choice.time && wickPage.choice.time.map(time => Math.round(100 * time / wickPage.timeline.last)));
  const press = async (key, times = 1) => { for (let i = 0; i < times; i++) await page.keyboard.press(key); };
  await open(page, timed);
  await view(page, "timeline");
  await page.locator("#lanes").focus();
  await press("Shift+ArrowRight", 2);
  await press("ArrowRight", 5);
  assert.match(await page.locator("#details").textContent(), /^0\.\d+ s: Enter begins a range here$/);
  await press("Enter");
  await press("Shift+ArrowRight", 3);
  await press("ArrowLeft", 5);
  assert.match(await page.locator("#details").textContent(), /^0\.\d+ s to 0\.\d+ s: Enter chooses this range$/);
  assert.equal(await range(), null, "nothing is chosen yet");
  await press("Enter");
  await settle(page);
  assert.deepEqual(await range(), [25, 50]);
  await press("Enter");
  await press("ArrowRight", 3);
  await press("Escape");
  await press("Enter", 2);
  assert.deepEqual(await range(), [25, 50], "what was begun can be given up, and a range of nothing is none");
  await press("Escape");
  await settle(page);
  assert.equal(await range(), null, "everything again");
});

test("timeline-range-by-touch", async page => {
  await open(page, timed);
  await view(page, "timeline");
  const range = await page.evaluate(() => {
    const lanes = document.getElementById("lanes"), box = lanes.getBoundingClientRect();
    const send = (type, part) => lanes.dispatchEvent(new PointerEvent(type, { bubbles: true, isPrimary: true, pointerType: "touch", clientX: box.x + 190 + (box.width - 190) * part, clientY: box.y + 5 }));
    send("pointerdown", 0.2);
    send("pointermove", 0.6);
    send("pointercancel", 0);
    const given = wickPage.choice.time;
    send("pointerdown", 0.2);
    send("pointermove", 0.6);
    send("pointerup", 0.6);
    return [given, wickPage.choice.time.map(time => Math.round(10 * time / wickPage.timeline.last))];
  });
  assert.deepEqual(range, [null, [2, 6]]);
});

test("timeline-waits", async page => {
  const away = (tid, ms, next, frames) => `app 10/${tid} [000] ${(100 + ms / 1000).toFixed(6)}: sched:sched_switch: prev_comm=app prev_pid=${tid} prev_prio=120 prev_state=S ==> next_comm=app next_pid=${next} next_prio=120\n` +
    frames.map((name, i) => `\t    ${(4096 + i).toString(16)} ${name}+0x1 (/bin/app)\n`).join("") + "\n";
  const text = away(11, 0, 12, ["sleep", "work"]) + away(12, 10, 11, ["read", "load"]) + away(11, 15, 12, ["lock", "work"]) + away(12, 90, 11, ["read", "load"]);
  await open(page, draw(text, "html", "--html", "--from", "perf-sched"));
  await view(page, "timeline");
  const chart = () => page.evaluate(() => {
    const p = wickPage.chart.panes[0], s = p.shape, list = [];
    for (let n = 1; n < s.count; n++) list.push(`${wickPage.chart.name(p, n)} ${Math.round(s.left[n] / 1e6)}+${Math.round(s.size[n] / 1e6)}`);
    return list;
  });
  assert.deepEqual(await chart(), ["work 0+90", "sleep 0+10", "lock 15+75"], "a gap that is shorter than what is usual belongs to the callers");
  assert.equal(await page.evaluate(() => Math.round(wickPage.timeline.last / 1e6)), 90, "the last wait ends it");
  assert.match(await page.locator("#range").textContent(), /^Orange ran, blue waited/);
  const colours = await page.evaluate(() => {
    const lanes = document.getElementById("lanes"), c = lanes.getContext("2d"), at = x => [...c.getImageData(x * lanes.width, 14 * devicePixelRatio, 1, 1).data].slice(0, 3).join();
    const left = 190 / lanes.getBoundingClientRect().width;
    return [at(left + (1 - left) * 5 / 90), at(left + (1 - left) * 12 / 90)];
  });
  assert.notEqual(colours[0], colours[1], "neither waits nor runs between its waits");
  await open(page, timed);
  await view(page, "timeline");
  assert.match(await page.locator("#range").textContent(), /^Drag/);
});

// In the table a wait belongs to the function that blocked, with the kernel's reason, as in `wick report --off-cpu`; a click goes to that function.
test("table-of-waits", async page => {
  const frame = name => `\t    ${name.startsWith("_") || name === "schedule" ? `ffffffff81000000 ${name}+0x1 ([kernel.kallsyms])` : `1000 ${name}+0x1 (/bin/app)`}\n`;
  const away = (tid, ms, next, frames) => `app 10/${tid} [000] ${(100 + ms / 1000).toFixed(6)}: sched:sched_switch: prev_comm=app prev_pid=${tid} prev_prio=120 prev_state=S ==> next_comm=app next_pid=${next} next_prio=120\n` +
    frames.map(frame).join("") + "\n";
  const lock = ["__schedule", "schedule", "__futex_wait", "__x64_sys_futex", "lock", "work"], fault = ["__schedule", "__do_page_fault", "touch", "work"], own = ["__schedule", "__kthread_parkme"];
  const text = away(11, 0, 12, lock) + away(12, 10, 11, fault) + away(11, 15, 12, lock) + away(12, 90, 13, fault) + away(13, 91, 12, own) + away(12, 92, 13, fault) + away(13, 95, 11, own);
  await open(page, draw(text, "html", "--html", "--from", "perf-sched"));
  await view(page, "table");
  const rows = () => page.evaluate(() => [...document.querySelectorAll("#table tbody tr")].map(row => [row.cells[0].textContent, row.lastChild.textContent]).filter(([self]) => self !== "0" && self !== "0 ns"));
  const shown = await rows();
  assert.deepEqual(shown.map(([, name]) => name).sort(), ["__kthread_parkme", "lock [futex]", "touch [page fault]"]);
  const said = execFileSync(process.env.WICK, ["report", "-q", "--off-cpu", "--from", "perf-sched", "--json", "-"], { input: text, stdio: ["pipe", "pipe", "ignore"] });
  const told = JSON.parse(said).rows.filter(row => row.self);
  const order = list => list.map(([name, self]) => `${name} ${self}`).sort();
  assert.deepEqual(order(await page.evaluate(() => [...document.querySelectorAll("#table tbody tr")].map(row => [row.lastChild.textContent, row.cells[0].textContent]))
    .then(list => list.filter(([, self]) => !/^0( ns)?$/.test(self)))), order(told.map(({ name, self }) => [name, (self / 1e6).toFixed(2) + " ms"])));
  await page.locator("#table td.name button", { hasText: "lock [futex]" }).click();
  await settle(page);
  assert.equal(await page.locator("#middle").inputValue(), "lock");
});

// One page has time on the CPU, off it, and both; they add up to what the commands say of the same recording.
test("times", async page => {
  const recording = readFileSync(new URL("../../fuzz/seeds/script/waits.data", import.meta.url));
  const total = () => page.evaluate(() => Math.round(wickPage.graph.panes[0].shape.total[0]));
  const list = () => page.evaluate(() => wickPage.graph.panes[0].shape.place.length);
  const ran = 750000, waited = 14341292, both = 15020611;
  const choose = async times => (await page.locator("#times").selectOption(times), settle(page));
  await open(page, draw(recording, "html", "--html", "--kallsyms", "/dev/null"));
  assert.equal(await page.locator("#title").textContent(), "Flame Graph");
  assert.deepEqual(await page.locator("#times option").allTextContents(), ["on-CPU", "off-CPU", "wall"]);
  assert.equal(await total(), ran);
  const warm = await page.evaluate(() => wickPage.graph.colour(wickPage.graph.panes[0], 2));
  const shot = () => page.evaluate(() => wickPage.graph.canvas.toDataURL());
  const onCpu = await shot();
  await choose("off-cpu");
  assert.notEqual(await shot(), onCpu, "it is drawn anew");
  assert.equal(await total(), waited);
  assert.equal(await page.locator("#title").textContent(), "Off-CPU Time");
  assert.notEqual(await page.evaluate(() => wickPage.graph.colour(wickPage.graph.panes[0], 2)), warm, "waits have colours of their own");
  assert.match(page.url(), /times=off-cpu/);
  await choose("wall");
  assert.equal(await total(), both);
  assert.equal(await page.locator("#title").textContent(), "Wall Time");
  assert.ok(await list() > 1);
  // What ran is there twice, as measured and beside waits, and drawn once.
  await view(page, "timeline");
  const samples = () => page.evaluate(() => wickPage.timeline.threads.reduce((sum, thread) => sum + thread.list.length, 0));
  const wall = await samples();
  assert.match(await page.locator("#range").textContent(), /^Orange ran, blue waited/);
  await choose("on-cpu");
  const running = await samples();
  assert.match(await page.locator("#range").textContent(), /^Drag/);
  await choose("off-cpu");
  const waiting = await samples();
  assert.ok(running > 0 && waiting > 0 && wall <= running + waiting, `${running} ${waiting} ${wall}`);
  await view(page, "table");
  await choose("wall");
  const rows = await page.evaluate(() => [...document.querySelectorAll("#table tbody tr")].length);
  assert.ok(rows > 0);
  // The URL keeps the choice, and what a run is about is what its page opens with.
  await view(page, "flame");
  const url = page.url();
  await page.goto("about:blank");
  await open(page, url);
  assert.equal(await page.locator("#times").inputValue(), "wall");
  await open(page, draw(recording, "html", "--html", "--wall", "--kallsyms", "/dev/null"));
  assert.equal(await page.locator("#times").inputValue(), "wall");
  assert.equal(await total(), both);
  await open(page, timed);
  assert.ok(await page.locator("#times-box").isHidden(), "nothing to choose from");
});

// The page opens with what the picture shows.
test("events-together", async page => {
  const sample = (event, name) => `app 10/10 [000] 100.000000: 5 ${event}: \n\t    1000 ${name}+0x1 (/bin/app)\n\n`;
  const text = sample("cycles", "a") + sample("page-faults", "b");
  await open(page, draw(text, "html", "--html", "--event", "all"));
  assert.equal(await page.locator("#event").inputValue(), "");
  assert.equal((await names(page))[0], "all 10");
});

test("no-timeline-without-time", async page => {
  await open(page, simple);
  assert.equal(await page.locator("#views [data-view=timeline]").count(), 0);
});

test("search", async page => {
  await open(page, simple);
  await page.keyboard.press("/");
  await page.keyboard.type("^re|ST");
  assert.equal(await matched(page), "Matched: 30.0%", "capitals match only capitals");
  await page.fill("#search", "^re|st");
  assert.equal(await matched(page), "Matched: 70.0%");
  await page.fill("#search", "^RE|st");
  const exact = await matched(page);
  await page.fill("#search", "^re|st");
  await page.check("#case");
  assert.notEqual(exact, "Matched: 70.0%");
  assert.match(await page.textContent("label:has(#case)"), /Match case/);
  await page.uncheck("#case");
  await page.focus("#search");
  const found = [];
  for (let i = 0; i < 4; i++) {
    await page.keyboard.press(i < 3 ? "Enter" : "Shift+Enter");
    found.push(await page.evaluate(() => { const { pane, node } = wickPage.graph.focus; return node + " " + wickPage.graph.name(pane, node); }));
  }
  assert.ok(found.every(name => /^\d+ re|st/i.test(name)) && found[0] !== found[1] && found[3] === found[1], found.join());
  await click(page, "run");
  assert.match(await matched(page), /^Matched: 100%/, "follows the zoom");
  await page.fill("#search", "[");
  assert.equal(await matched(page), "Matched: 0.0% (as plain text)");
  await page.keyboard.press("Escape");
  assert.equal(await matched(page), "");
});

test("hide-focus-collapse", async page => {
  await open(page, simple);
  const choose = async (name, item) => {
    await click(page, name, 0, { button: "right" });
    await page.locator("#menu button", { hasText: item }).click();
    await settle(page);
  };
  await choose("run", "Hide this function");
  assert.ok((await names(page)).includes("---step 40"), "callees go to the caller");
  await choose("parse", "Only stacks through it");
  assert.deepEqual(await names(page), ["all 50", "-app 50", "--main 50", "---parse 50", "----read 30"]);
  await page.locator("#filters button").first().click();
  await page.locator("#filters button").first().click();
  await page.check("#collapse");
  await settle(page);
  assert.ok((await names(page)).includes("-----add 40"), "recursion is one frame");
  assert.ok(!(await names(page)).some(line => line.startsWith("-----step")));
});

test("patterns", async page => {
  await open(page, simple);
  // By keyboard alone: the box opens, and what is typed counts when it is left.
  await page.locator("#rules summary").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "rule-focus");
  await page.keyboard.type("^r(un|ead)$");
  await page.keyboard.press("Tab");
  await settle(page);
  assert.deepEqual(await names(page), ["all 70", "-app 70", "--main 70", "---parse 30", "----read 30", "---run 40", "----step 40", "-----add 25", "-----step 15", "------add 15"]);
  await page.locator("#rule-ignore").fill("read");
  await page.locator("#rule-hide").fill("^step$");
  await page.locator("#rule-root").fill("main");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.deepEqual(await names(page), ["all 40", "-main 40", "--run 40", "---add 40"]);
  assert.equal(await page.locator("#filters button").count(), 4);
  const url = page.url();
  await page.locator("#rule-root").fill("(");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await page.locator("#rule-root").getAttribute("aria-invalid"), "true");
  assert.deepEqual(await names(page), ["all 40", "-app 40", "--main 40", "---run 40", "----add 40"]);
  await page.goto("about:blank"); // in Firefox, no more than a new hash loads nothing
  await open(page, url);
  assert.deepEqual(await names(page), ["all 40", "-main 40", "--run 40", "---add 40"], "the URL has them");
  for (let left = 4; left > 0; left--) await page.locator("#filters button").first().click();
  await settle(page);
  assert.equal((await names(page)).length, 11);
  assert.equal(await page.locator("#rule-focus").inputValue(), "");
});

// What the middle spends itself is what the table says, though its outermost frame spends less.
test("sandwich-recursion", async page => {
  await open(page, draw("a;rec;b;rec 5\na;rec 3\n", "html", "--html"));
  await page.evaluate(() => location.hash = "view=sandwich&middle=rec");
  await settle(page);
  await settle(page);
  assert.match(await details(page), /^rec \(8 samples, 100\.00%; self 8\)/);
});

test("copy", async page => {
  if (!inFirefox) await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await open(page, simple);
  // What is in the clipboard: read there where a browser lets us, pasted into the page where not.
  const clipboard = async () => {
    if (!inFirefox) return page.evaluate(() => navigator.clipboard.readText());
    await page.locator("#search").focus();
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Control+V");
    return page.locator("#search").inputValue();
  };
  for (const [item, text] of [["Copy stack", "app;main;run;step"], ["Copy name", "step"]]) {
    await click(page, "step", 0, { button: "right" });
    await page.locator("#menu button", { hasText: item }).click();
    await page.waitForFunction(wanted => document.getElementById("details").textContent === "Copied: " + wanted, text);
    assert.equal(await clipboard(), text);
  }
});

test("save", async page => {
  await open(page, timed);
  // Firefox tells nobody of a download: what the page hands to it is looked at there.
  const handed = async id => {
    await page.evaluate(() => {
      const real = URL.createObjectURL;
      URL.createObjectURL = blob => (window.handed = blob, real.call(URL, blob));
    });
    await page.locator(id).click();
    await page.waitForFunction(() => window.handed);
    return page.evaluate(() => window.handed.text());
  };
  const save = async id => {
    if (inFirefox) return handed(id);
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator(id).click()]);
    return readFileSync(await file.path(), "utf8");
  };
  await page.selectOption("#weight", "samples");
  assert.equal(await save("#save-folded"), "main;main;parse;read 30\nmain;main;run;step;add 30\nworker;thread;work;hash 20\n");
  const svg = await save("#save-svg");
  assert.match(svg, /<title>hash \(20 samples, 25\.00%\)<\/title>/);
  const problem = await page.evaluate(text => new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror")?.textContent, svg);
  assert.equal(problem, undefined);
});

test("keyboard", async page => {
  await open(page, simple);
  await page.locator("#canvas").focus();
  for (const [key, name] of [["ArrowUp", "app"], ["ArrowUp", "main"], ["ArrowLeft", "idle"], ["ArrowRight", "main"], ["ArrowUp", "parse"],
                             ["ArrowRight", "run"], ["ArrowDown", "main"]]) {
    await page.keyboard.press(key);
    assert.match(await page.locator("#current").textContent(), new RegExp(`^${name} \\(`), key);
  }
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await spot(page, "idle"), null, "Enter zooms");
  await page.keyboard.press("Backspace");
  await settle(page);
  assert.ok(await spot(page, "idle"), "Backspace goes back");
  await page.locator("#views [aria-selected=true]").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#views [aria-selected=true]").textContent(), "Icicle");
});

test("url-state", async page => {
  await open(page, simple);
  await page.fill("#search", "add");
  await view(page, "icicle");
  await click(page, "run");
  const url = page.url();
  await page.goto("about:blank");
  await open(page, url);
  assert.equal(await page.locator("#views [aria-selected=true]").textContent(), "Icicle");
  assert.equal(await matched(page), "Matched: 100%");
  await page.goto("about:blank");
  await open(page, simple + "#view=banana&hidden=1&time=[&zoom=99999,-1&weight=x");
  assert.equal((await names(page))[0], "all 100", "nonsense is no harm");
});

// A row of frames each narrower than a pixel: what is looked at for it does not grow with their number.
test("many-siblings", async page => {
  const looked = [];
  for (const count of [20000, 200000]) {
    await open(page, draw(Array.from({ length: count }, (_, i) => `app;f${i} 1`).join("\n") + "\n", "html", "--html"));
    looked.push(await page.evaluate(() => wickPage.graph.looked));
  }
  assert.ok(looked[1] < 3 * looked[0], `${looked[1]} frames looked at, ${looked[0]} of a tenth as many`);
}, chromiumIsEnough);

for (const [name, make] of [["diff", () => draw("main;gone 40 0\nmain;new 0 60\nmain;same 40 40\n", "html", "--html")],
                            ["diff-of-two", () => compare("main;gone 40\nmain;same 40\n", "main;new 60\nmain;same 40\n", "html", "--html")]])
test(name, async page => {
  await open(page, make());
  const colour = name => page.evaluate(wanted => {
    const g = wickPage.graph, p = g.panes[0];
    for (let n = 0; n < p.shape.count; n++) if (g.name(p, n) === wanted) return g.colour(p, n) + " " + p.shape.size[n];
  }, name);
  assert.equal(await colour("gone"), "rgb(150,150,255) 40");
  assert.equal(await colour("new"), "rgb(255,100,100) 60");
  assert.equal(await colour("same"), "#fafafa 40");
  await page.selectOption("#shape", "after");
  await settle(page);
  assert.match(await colour("gone"), / 0$/);
  await view(page, "table");
  assert.deepEqual(await page.locator("#table tbody td.name").allTextContents(), ["new", "gone", "main", "same"], "what changed most first");
  const row = name => page.locator("#table tbody tr", { has: page.getByText(name, { exact: true }) }).locator("td:not(.share)").allTextContents();
  assert.deepEqual(await row("gone"), ["0", "0.00%", "50.00%", "-50.00", "0", "0.00%", "50.00%", "-50.00", "gone", "gone"]);
  assert.deepEqual(await row("same"), ["40", "40.00%", "50.00%", "-10.00", "40", "40.00%", "50.00%", "-10.00", "×1.00", "same"]);
  assert.deepEqual(await row("main"), ["0", "0.00%", "0.00%", "0.00", "100", "100.00%", "100.00%", "0.00", "×1.25", "main"]);
  for (const [column, first] of [["Total, change in points", "new"], ["Self before, %", "gone"], ["Factor", "new"]]) {
    await page.getByRole("button", { name: column }).click();
    assert.equal(await page.locator("#table tbody td.name").first().textContent(), first, column);
  }
  assert.equal(await saved(page, "#save-folded"), "main;gone 40 0\nmain;new 0 60\nmain;same 40 40\n", "both sides are saved");
  await view(page, "flame");
  await page.selectOption("#shape", "both");
  await settle(page);
  const at = await spot(page, "main");
  await page.mouse.move(at.x, at.y);
  assert.equal(await details(page), "main (100 samples, 100.00%; was 80, 100.00%: 0.00 points, ×1.25; self 0)");
  assert.match(await saved(page, "#save-svg"), /<title>gone \(0 samples, 0.00%; was 40, 50.00%: -50.00 points, gone\)<\/title>/);
});

test("diff-title", async page => {
  await open(page, compare("a 1\n", "a 2\n", "html", "--html"));
  assert.equal(await page.locator("#title").textContent(), "Differential Flame Graph");
  assert.equal(await page.locator("#weight-box").isVisible(), false, "there is one weight only");
});

test("weights", async page => {
  const traces = count => `--- Execution profile ---\nTotal samples : ${count + 1}\n\n--- 300 ns (60.00%), ${count} samples\n  [ 0] f\n\n--- 200 ns (40.00%), 1 sample\n  [ 0] g\n`;
  await open(page, draw(traces(5), "html", "--html"));
  assert.equal(await page.locator("#weight-box").isVisible(), true, "nanoseconds or samples");
  await open(page, draw(traces(1), "html", "--html"));
  assert.equal(await page.locator("#weight-box").isVisible(), false, "every stack counts once");
});

test("stacks-without-frames", async page => {
  await open(page, draw("main 10/10 [000] 1.000000: 1000 cpu-clock: \n\nmain 10/10 [000] 1.100000: 3000 cpu-clock: \n\t    1000 f+0x1 (/bin/app)\n\n", "html", "--html"));
  assert.deepEqual(await names(page), ["all 4000", "-main 4000", "--f 3000"]);
  await page.check("#collapse");
  await settle(page);
  assert.deepEqual(await names(page), ["all 4000", "-main 4000", "--f 3000"]);
  await page.selectOption("#group", "");
  await settle(page);
  assert.deepEqual(await names(page), ["all 4000", "-f 3000"]);
});

test("keys-and-tooltip", async page => {
  await open(page, simple);
  await page.keyboard.press("?");
  assert.ok(await page.locator("#keys").isVisible());
  await page.keyboard.press("Escape");
  assert.ok(!await page.locator("#keys").isVisible());
  const canvas = await page.locator("#canvas").boundingBox();
  await page.mouse.move(canvas.x + 300, canvas.y + canvas.height - 8);
  const tip = await page.locator("#tip").boundingBox();
  assert.match(await page.locator("#tip").textContent(), /^all .*100\.00%/);
  assert.ok(tip.x > canvas.x + 300 && tip.x < canvas.x + 330, "it stands at the pointer");
  await page.mouse.move(canvas.x + 300, canvas.y - 20);
  assert.ok(!await page.locator("#tip").isVisible());
});

test("browser-back", async page => {
  await open(page, simple);
  await click(page, "run");
  await view(page, "table");
  await page.evaluate(() => history.back()); // Firefox's driver waits for a document to load, and none does
  await page.waitForFunction(() => wickPage.choice.view === "flame");
  await settle(page);
  assert.ok(await page.evaluate(() => wickPage.graph.panes[0].zoomed) > 0, "the zoom is still there");
  await page.evaluate(() => history.back());
  await page.waitForFunction(() => wickPage.graph.panes[0].zoomed === 0);
});

test("numbered-threads", async page => {
  const threads = [0, 1, 2].map(i => `w-${i} 10/${i + 11} 1.${i}: 1 cycles: \n\t1 work (/x)\n\n`).join("");
  await open(page, draw(threads, "html", "--html"));
  assert.ok((await names(page)).some(name => /^-w-\* 3$/.test(name)), String(await names(page)));
  await page.selectOption("#group", "thread");
  await settle(page);
  assert.equal((await names(page)).filter(name => /^-w-\d 10/.test(name)).length, 3, String(await names(page)));
});

test("notes", async page => {
  const notes = page.locator("#notes"), summary = notes.locator("summary");
  await open(page, draw("good 5\nbad line\n", "html", "--html"));
  assert.match(await summary.textContent(), /^1 line/, "one is told at once");
  assert.equal(await notes.locator("li").count(), 0);
  await open(page, draw("good 5\nbad line\nhalf 1.5\n", "html", "--html", "--from", "folded"));
  assert.match(await summary.textContent(), /^2 things to know/);
  assert.match(await notes.locator("li").first().textContent(), /^1 line could not be read/, "what is wrong comes first");
  assert.equal(await notes.locator("li").count(), 2);
  assert.equal(await notes.locator("li").first().isVisible(), true, "and can be seen");
  const empty = join(work, "empty.folded");
  writeFileSync(empty, "");
  await open(page, draw("good 5\nhalf 1.5\n", "html", "--html", empty));
  assert.match(await summary.textContent(), /^2 things to know/);
  assert.equal(await notes.getAttribute("open"), null, "what only explains is one line");
  assert.ok((await notes.boundingBox()).height < 40);
  await summary.focus();
  await page.keyboard.press("Enter");
  assert.equal(await notes.locator("li").first().isVisible(), true, "that a key opens");
});

test("many-notes-scroll", async page => {
  for (const [width, height] of [[390, 760], [1220, 900]]) {
    await page.setViewportSize({ width, height });
    await open(page, draw("good 5\nbad line\nhalf 1.5\n", "html", "--html", "--from", "folded"));
    await page.evaluate(() => {
      const list = document.querySelector("#notes ul");
      for (let i = 0; i < 60; i++) list.append(Object.assign(document.createElement("li"), { textContent: `note ${i} ${"of many words ".repeat(9)}` }));
    });
    await settle(page);
    const at = await page.evaluate(() => {
      const list = document.querySelector("#notes ul"), graph = document.querySelector("#canvas").getBoundingClientRect();
      return { high: list.clientHeight / innerHeight, all: list.scrollHeight / list.clientHeight, wide: document.documentElement.scrollWidth - innerWidth, room: graph.height };
    });
    assert.ok(at.high <= 0.41 && at.all > 2 && at.wide <= 0 && at.room > 100, `${width} px: ${JSON.stringify(at)}`);
    await page.locator("#notes ul").focus();
    await page.keyboard.press("End");
    await page.waitForFunction(() => document.querySelector("#notes ul").scrollTop > 0);
  }
});

test("strip", async page => {
  const text = "main;ns::f<int>(long) 3\nmain;ns::f<char>(long) 4\nmain;g(int) 5\n";
  const shown = async (...options) => (await open(page, draw(text, "html", "--html", ...options)), (await names(page)).slice(1));
  assert.deepEqual(await shown("--strip-templates"), ["-main 12", "--g(int) 5", "--ns::f(long) 7"]);
  assert.deepEqual(await shown("--strip-arguments"), ["-main 12", "--g 5", "--ns::f<char> 4", "--ns::f<int> 3"]);
  assert.deepEqual(await shown("--strip-templates", "--strip-arguments"), ["-main 12", "--g 5", "--ns::f 7"]);
});

// Black or white labels on every palette, on what grew and shrank, found and dimmed; 4.5 is what WCAG asks of text.
for (const scheme of ["light", "dark"])
test("contrast-" + scheme, async page => {
  for (const palette of palettes) {
    await open(page, draw(manyNames, "html", "--html", "--colors", palette));
    await click(page, "zoomed_0");
    const seen = await page.evaluate(() => {
      const g = wickPage.graph, c = g.context, real = { rect: c.fillRect, text: c.fillText }, list = [];
      let last;
      c.fillRect = function (...a) { last = [c.fillStyle, c.globalAlpha]; real.rect.apply(c, a); };
      c.fillText = function (...a) { list.push([...last, c.fillStyle]); real.text.apply(c, a); };
      g.paint();
      g.zoom({ pane: g.panes[0], node: 0 }, false);
      g.paint();
      return { list, back: getComputedStyle(document.body).backgroundColor };
    });
    assert.ok(seen.list.length > 60 && seen.list.some(([, alpha]) => alpha < 1), "labels were drawn, and dimmed ones");
    for (const [fill, alpha, text] of seen.list) {
      const got = contrast(text, fill, alpha, seen.back);
      assert.ok(got >= 4.5, `${palette}: ${text} on ${fill} at ${alpha}: ${got.toFixed(2)}`);
    }
  }
}, "the colours are the page's, and Chromium was asked");

test("dark", async page => {
  await open(page, simple);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(23, 25, 30)");
});

test("hostile-names", async page => {
  const all = [...hostile, "<x>".repeat(33000)];
  await open(page, draw(all.map(name => `root;${name};leaf 10\n`).join(""), "html", "--html", "--title", "</title><script>window.ran=1</script>\u202e",
                        "--subtitle", "<img src=x onerror=window.ran=1>\u200b"));
  assert.equal(await page.title(), "</title><script>window.ran=1</script>\\u202e");
  assert.match(await page.locator("header").textContent(), /\\u202e.*\\u200b/s);
  assert.ok(!/[\u200b-\u200f\u202a-\u202e]/.test(await page.evaluate(() => document.body.innerText)), "nothing hidden is in sight");
  const shown = await page.evaluate(() => wickPage.model.places.map(p => p.name));
  for (const name of all) assert.ok(shown.includes(shownName(name)), "as given, or as an escape: " + name.slice(0, 40));
  for (const name of ["icicle", "reversed", "sandwich", "table"]) await view(page, name);
  for (const name of hostile) assert.ok(await page.locator("#table td.name").evaluateAll((list, wanted) => list.some(td => td.textContent === wanted), shownName(name)), name);
  await view(page, "flame");
  await click(page, "}*{display:none", 0, { button: "right" });
  await page.locator("#menu button", { hasText: "Search for it" }).click();
  assert.equal(await matched(page), `Matched: ${(100 / all.length).toFixed(1)}%`);
  assert.equal(await page.evaluate(() => window.ran), undefined, "nothing ran");
});

// As threads and commands, in the timeline, below a selection, in a differential page; and in what the page saves.
test("hostile-everywhere", async page => {
  const names_ = hostile.map(name => name.replaceAll(/[()]/g, "_"));
  let text = "";
  names_.forEach((name, i) => text += `${name.replaceAll(" ", "_")} 10/${20 + i} [000] 1.${String(100 + i)}000: 1000 cpu-clock: \n\t    1000 ${name}+0x1 (/lib/${name.replaceAll("/", "")}.so)\n\n`);
  await open(page, draw(text, "html", "--html", "--from", "perf"));
  await view(page, "timeline");
  const threads = await page.evaluate(() => wickPage.timeline.threads.map(t => t.name));
  assert.equal(threads.length, names_.length);
  await page.locator("#lanes").focus();
  for (let i = 0; i < threads.length; i++) await page.keyboard.press("ArrowDown");
  const box = await page.locator("#chart").boundingBox();
  await page.mouse.move(box.x + 30, box.y + 8);
  for (const by of ["object", "thread", "category", "function"]) {
    await view(page, "table");
    await page.selectOption("#by", by);
    const shown = await page.locator("#table td.name").evaluateAll(list => list.map(td => td.textContent));
    if (by === "thread") for (const thread of threads) assert.ok(shown.includes(thread), thread);
    if (by === "function") for (const name of names_) assert.ok(shown.includes(shownName(name)), name);
    if (by === "object") assert.ok(shown.some(name => name.includes("<img")), by);
  }
  await chooseThread(page, threads[3]);
  await view(page, "sandwich");
  await view(page, "reversed");
  assert.equal(await page.evaluate(() => window.ran), undefined, "nothing ran");

  await open(page, compare(hostile.map(name => `root;${name} 10\n`).join(""), hostile.map((name, i) => `root;${name} ${i}\n`).join(""), "html", "--html"));
  for (const name of ["icicle", "reversed", "sandwich", "table"]) await view(page, name);
  const shown = await page.locator("#table td.name").evaluateAll(list => list.map(td => td.textContent));
  for (const name of hostile) assert.ok(shown.includes(shownName(name)), name);
  const svg = await saved(page, "#save-svg");
  const problem = await page.evaluate(text => new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror, script, img, [onload]")?.outerHTML, svg);
  assert.equal(problem, undefined, "the picture that is saved");
  assert.equal(await page.evaluate(() => window.ran), undefined, "nothing ran");
});

test("hostile-bytes", async page => {
  const bytes = Buffer.concat([Buffer.from("root;ctrl\x01\x02\x1b[31m\x7f;leaf 10\nroot;bad"), Buffer.from([0xff, 0xfe, 0x80, 0xc0, 0xed, 0xa0, 0x80]),
                               Buffer.from(";leaf 10\n")]);
  await open(page, draw(bytes, "html", "--html"));
  const shown = await page.evaluate(() => wickPage.model.places.map(p => p.name));
  assert.ok(shown.includes("ctrl\\x01\\x02\\x1b[31m\\x7f"), "control characters");
  assert.ok(shown.includes("bad\\xff\\xfe\\x80\\xc0\\xed\\xa0\\x80"), "bytes that are no UTF-8");
  await view(page, "table");
});

test("million-nodes", async page => {
  // A tenth of it where everything is ten times slower.
  const count = process.env.SANITIZED ? 40000 : 400000, lines = [];
  for (let i = 0; i < count; i++) lines.push(`app;a${i % 7};b${i % 101};c${i % 1009};d${i % 50021};e${i};f${i % 3} ${1 + i % 5}`);
  await open(page, draw(lines.join("\n") + "\n", "html", "--html"));
  assert.ok(await page.evaluate(() => wickPage.model.count) > 2.5 * count);
  // Every redraw of a pan and a zoom: no more frames than pixels in a row, rows in sight; and no looking through all the others.
  const work = [];
  const redraw = async act => {
    await act();
    await settle(page);
    work.push(await page.evaluate(() => ({ drawn: wickPage.graph.drawn, looked: wickPage.graph.looked,
                                           most: Math.ceil(wickPage.graph.width / 0.6) * (Math.ceil(wickPage.graph.height / 17) + 1) })));
  };
  await redraw(() => {});
  const box = await page.locator("#canvas").boundingBox(), x = box.x + box.width / 3, y = box.y + box.height - 40;
  await page.mouse.move(x, y);
  for (let i = 0; i < 6; i++) await redraw(() => page.evaluate(([x, y]) => document.getElementById("canvas").dispatchEvent(
    new WheelEvent("wheel", { deltaY: -500, ctrlKey: true, clientX: x, clientY: y, bubbles: true, cancelable: true })), [x, y]));
  await page.mouse.down();
  for (let i = 1; i < 6; i++) await redraw(() => page.mouse.move(x + 60 * i, y));
  await page.mouse.up();
  await page.fill("#search", "e[0-9]*7$");
  await redraw(() => page.locator("#reset").click());
  for (const { drawn, looked, most } of work) {
    assert.ok(drawn > 0 && drawn <= most, `${drawn} frames drawn, ${most} places to see one`);
    assert.ok(looked <= 25 * most, `${looked} frames looked at for ${most} places`);
  }
  await page.fill("#search", "");
  await click(page, "a3");
  assert.ok((await spot(page, "b3")) !== null);
  for (const name of ["reversed", "sandwich", "table"]) await view(page, name);
  assert.ok(await page.locator("#table tbody tr").count() <= 300, "only the rows that are looked at");
}, chromiumIsEnough);

// A page opens with each command's stacks below a frame of its own: the same tree as one that is built sample by sample.
test("many-nodes-by-thread", async page => {
  const threads = 40, each = process.env.SANITIZED ? 100 : 1000;
  let text = "";
  for (let i = 0; i < each; i++)
    for (let t = 0; t < threads; t++)
      text += `t${t}x 10/${11 + t} [000] ${(100 + i / 1000).toFixed(6)}: 1000000 cpu-clock: \n` +
        [`leaf${i % 211}`, `d${i % 101}`, `c${i % 31}`, `b${(i * 7 + t) % 11}`, `a${t % 5}`].map((name, k) => `\t    ${(4096 + k).toString(16)} ${name}+0x1 (/bin/app)\n`).join("") + "\n";
  await open(page, draw(text, "html", "--html"));
  // A tree of its own, from the samples, as slow as it likes.
  const wrong = await page.evaluate(() => {
    const {model, graph} = wickPage, {shape} = graph.panes[0], {samples} = model, seen = new Map(), faults = [];
    for (let i = 0; i < samples.count; i++) {
      const stack = [model.series[samples.series[i]].comm];
      for (let n = samples.node[i]; n > 0; n = model.parent[n]) stack.splice(1, 0, model.places[model.place[n]].name);
      for (let k = 1; k <= stack.length; k++) seen.set(stack.slice(0, k).join(";"), (seen.get(stack.slice(0, k).join(";")) || 0) + samples.weight[i]);
    }
    for (let n = 1; n < shape.count; n++) {
      const stack = graph.stack({pane: graph.panes[0], node: n}), key = stack.join(";");
      if (shape.total[n] !== seen.get(key)) faults.push(`${key}: ${shape.total[n]}, not ${seen.get(key)}`);
      if (shape.depth[n] !== stack.length || shape.parent[n] >= n || shape.end[n] <= n || shape.end[n] > shape.end[shape.parent[n]]) faults.push(`${key}: out of place`);
      seen.delete(key);
    }
    return [...faults, ...seen.keys()].slice(0, 3);
  });
  assert.deepEqual(wrong, []);
  // The same in a range of time, in which samples are in no order of the tree.
  const total = () => page.evaluate(() => wickPage.graph.panes[0].shape.total[0]);
  const whole = await total();
  await page.evaluate(() => location.hash = "time=" + JSON.stringify([0, wickPage.timeline.last / 2]));
  await page.waitForFunction(before => wickPage.graph.panes[0].shape.total[0] < before, whole);
  const [half, threadsSeen] = await page.evaluate(() => {
    const {shape} = wickPage.graph.panes[0];
    let roots = 0;
    for (let n = 1; n < shape.count; n = shape.end[n]) roots++;
    return [shape.total[0], roots];
  });
  assert.ok(half > 0.45 * whole && half < 0.55 * whole, `${half} of ${whole}`);
  assert.equal(threadsSeen, threads);
});

await runAll("page", { dark: { colorScheme: "dark" }, "contrast-dark": { colorScheme: "dark" }, "contrast-light": { colorScheme: "light" } });
