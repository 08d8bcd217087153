// The SVG in a browser: zoom, search, keyboard, state in the URL, names that mean harm.
import { assert, compare, contrast, draw, hostile, inFirefox, palettes, runAll, shownName, test } from "./harness.mjs";

const stacks = `app;main;parse;read 30
app;main;parse 20
app;main;run;step;add 25
app;main;run;step;mul 15
app;idle 10
`;
const simple = draw(stacks, "svg");
const frame = (page, name) => page.locator("#frames > g").filter({ has: page.locator("title", { hasText: new RegExp("^" + name + " \\(") }) }).first();
const box = async (page, name) => (await frame(page, name).locator("rect").boundingBox());
const shown = (page, name) => frame(page, name).isVisible();
const matched = page => page.locator("#matched").textContent();
const query = page => new URL(page.url()).searchParams;
// The picture at another width of the window: its script has answered when the frames' room is the new one.
const widen = async (page, width, height) => {
  await page.setViewportSize({ width, height });
  await page.waitForFunction(room => +document.getElementById("frames").getAttribute("width") === room, width - 20);
};
const near = (a, b, what) => assert.ok(Math.abs(a - b) < 2.5, `${what}: ${a} is not ${b}`);

test("whole", async page => {
  await page.goto(simple);
  const all = await box(page, "all"), main = await box(page, "main"), idle = await box(page, "idle");
  near(all.width, 1200, "the root spans the plot");
  near(main.width, 1080, "main");
  near(idle.x, all.x, "children stand in order of their names");
  near(main.x, all.x + 120, "and side by side");
  assert.ok(main.y < all.y, "the root is at the bottom");
  assert.equal(await frame(page, "parse").locator("text").textContent(), "parse");
});

test("zoom", async page => {
  await page.goto(simple);
  await frame(page, "run").click();
  const all = await box(page, "all");
  near((await box(page, "run")).width, 1200, "the clicked frame fills the width");
  near((await box(page, "main")).width, 1200, "so do its ancestors");
  near((await box(page, "add")).width, 1200 * 25 / 40, "callees are in proportion");
  near((await box(page, "mul")).x, all.x + 1200 * 25 / 40, "and in place");
  assert.equal(await shown(page, "parse"), false, "others are hidden");
  assert.ok(await frame(page, "main").locator("rect").evaluate(r => +getComputedStyle(r).opacity < 0.6), "ancestors are dimmed");
  await page.getByRole("button", { name: "Reset Zoom" }).click();
  near((await box(page, "run")).width, 480, "reset");
  assert.equal(await shown(page, "parse"), true);
  assert.equal(await page.getByRole("button", { name: "Reset Zoom" }).isVisible(), false);
});

test("back", async page => {
  await page.goto(simple);
  await frame(page, "main").click();
  await frame(page, "step").click();
  near((await box(page, "step")).width, 1200, "zoomed twice");
  await page.getByRole("button", { name: "Back" }).click();
  await page.waitForFunction(() => location.search.includes("y=2"));
  near((await box(page, "main")).width, 1200, "back once");
  near((await box(page, "step")).width, 1200 * 40 / 90, "callees too");
  await page.goBack();
  await page.waitForFunction(() => !location.search.includes("y="));
  near((await box(page, "main")).width, 1080, "the browser's own button goes back as well");
});

test("touches-only-what-is-visible", async page => {
  const lines = [];
  for (let i = 0; i < 3000; i++) lines.push(`app;group${i % 30};leaf${i} 10`);
  await page.goto(draw(lines.join("\n") + "\n", "svg"));
  assert.ok(await page.locator("#frames > g").count() > 3000);
  await page.evaluate(() => {
    window.touched = new Set();
    new MutationObserver(list => list.forEach(m => window.touched.add(m.target.closest ? m.target.closest("#frames > g, #frames") : m.target.parentNode)))
      .observe(document.getElementById("frames"), { attributes: true, childList: true, subtree: true });
  });
  await frame(page, "group7").click();
  const first = await page.evaluate(() => new Promise(done => setTimeout(() => done(window.touched.size), 50)));
  assert.ok(first <= 100 + 3 + 2, `100 callees, 3 ancestors, the whole: ${first} elements changed`);
  assert.equal(await page.locator("#frames > g:visible").count(), 103);
});

test("search", async page => {
  await page.goto(simple);
  await page.keyboard.press("/");
  await page.keyboard.type("^re|st");
  assert.equal(await matched(page), "Matched: 70.0%");
  const fill = name => frame(page, name).locator("rect").evaluate(r => getComputedStyle(r).fill);
  assert.equal(await fill("read"), "rgb(230, 0, 230)");
  assert.notEqual(await fill("parse"), "rgb(230, 0, 230)");
  await frame(page, "run").click();
  assert.match(await matched(page), /^Matched: 100%/, "the share follows the zoom");
  await frame(page, "main").click();
  assert.equal(await matched(page), "Matched: 77.8%");
  await page.fill("#search", "READ");
  assert.equal(await matched(page), "Matched: 0.0%", "capitals match only capitals");
  await page.fill("#search", "(");
  assert.equal(await matched(page), "Matched: 0.0% (as plain text)");
  await page.check("#case");
  await page.fill("#search", "read");
  assert.equal(await matched(page), "Matched: 33.3%");
  await page.fill("#search", "");
  assert.equal(await matched(page), "");
  assert.equal(await page.locator("#frames .m").count(), 0);
});

test("search-counts-each-place-once", async page => {
  await page.goto(draw("a;b;a;b 50\na;c 50\n", "svg"));
  await page.fill("#search", "b");
  assert.equal(await matched(page), "Matched: 50.0%");
  await page.fill("#search", "samples|%");
  assert.equal(await matched(page), "Matched: 0.0%", "names are searched, not counts");
});

test("url-state", async page => {
  await page.goto(simple);
  await frame(page, "run").click();
  await page.fill("#search", "add");
  await page.check("#case");
  assert.equal(query(page).get("s"), "add");
  assert.equal(query(page).get("mc"), "1");
  const url = page.url();
  await page.goto("about:blank");
  await page.goto(url);
  near((await box(page, "run")).width, 1200, "the zoom is back");
  assert.equal(await matched(page), "Matched: 62.5%");
  await page.goto(simple + "?x=banana&y=-3&s=%28");
  near((await box(page, "run")).width, 480, "nonsense is no harm");
});

test("keyboard", async page => {
  await page.goto(simple);
  const focus = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  await page.locator("#frames > g[tabindex]").focus();
  assert.match(await focus(), /^all \(100 samples, 100%\)/);
  for (const [key, name] of [["ArrowUp", "app"], ["ArrowUp", "main"], ["ArrowLeft", "idle"], ["ArrowRight", "main"], ["ArrowUp", "parse"],
                             ["ArrowRight", "run"], ["ArrowUp", "step"], ["ArrowDown", "run"]]) {
    await page.keyboard.press(key);
    assert.match(await focus(), new RegExp(`^${name} \\(`), key);
  }
  assert.match(await page.locator("#details").textContent(), /^Function: run \(40 samples, 40\.00%\)/);
  await page.keyboard.press("Enter");
  near((await box(page, "run")).width, 1200, "Enter zooms");
  await page.keyboard.press("Backspace");
  await page.waitForFunction(() => !location.search.includes("y="));
  await page.keyboard.press("Enter");
  await page.keyboard.press("/");
  await page.keyboard.type("add");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#search").evaluate(input => input.value), "");
  await page.keyboard.press("Escape");
  near((await box(page, "run")).width, 480, "Escape resets");
  assert.equal(await page.locator("#frames").getAttribute("role"), "tree");
  assert.equal(await page.locator("#frames > g[tabindex]").count(), 1, "one frame has the focus");
});

test("hover", async page => {
  await page.goto(simple);
  await frame(page, "mul").hover();
  assert.equal(await page.locator("#details").textContent(), "Function: mul (15 samples, 15.00%)");
});

// A long name that several frames have is in the file once; titles have it shortened until they are looked at.
test("long-names", async page => {
  const long = `ns::Executor<${"std::allocator<char>, ".repeat(9)}true>::run(long)`;
  await page.goto(draw(`main;a;${long};${long};x 60\nmain;b;${long} (2) 40\nmain;${long} 100\n`, "svg"));
  const title = i => page.evaluate(i => [...document.querySelectorAll("#frames > g")].filter(g => g.hasAttribute("fg:n"))[i].querySelector("title").textContent, i);
  assert.match(await title(0), /^ns::Executor‹…›::run\(long\) \(60 samples, 30\.00%\)$/);
  const there = page.locator("#frames > g").filter({ has: page.locator("title", { hasText: "(60 samples" }) }).nth(1);
  await there.hover();
  assert.equal(await there.locator("title").textContent(), `${long} (60 samples, 30.00%)`, "the tooltip has all of it");
  assert.equal(await page.locator("#details").textContent(), "Function: ns::Executor‹…›::run(long) (60 samples, 30.00%)", "the status line has as much as fits, and the end");
  await there.click();
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), `${long} (60 samples, 30.00%)`);
  await page.keyboard.press("Escape");
  await page.fill("#search", "allocator<char>, true>::run\\(long\\)$");
  assert.equal(await page.locator("#matched").textContent(), "Matched: 80.0%", "a search sees whole names, the second of which ends otherwise");
});

test("title-beside-search", async page => {
  const long = "A title that says at length what was measured, where, and how it was done";
  await page.goto(draw("main 1\n", "svg", "--title", long));
  for (const width of [1220, 640, 380]) {
    await widen(page, width, 300);
    const [title, search] = [await page.locator("#title").boundingBox(), await page.locator("#search").boundingBox()];
    assert.ok(title.x + title.width <= search.x, `${width}: ${title.x + title.width} is behind ${search.x}`);
    assert.equal(await page.locator("#title").evaluate(e => e.firstChild.textContent === e.textContent), width === 1220, "what is cut has a tooltip");
  }
});

test("times-as-people-say-them", async page => {
  const said = async (url, name) => (await page.goto(url), await frame(page, name).hover(), await page.locator("#details").textContent());
  const url = draw("main;odd 5 ns, x 1234567890\nmain;b 1500\nmain;c 20\n", "svg", "--countname", "ns", "--minwidth", "0");
  assert.equal(await said(url, "odd 5 ns, x"), "Function: odd 5 ns, x (1.23 s, 100.00%)");
  assert.match(await frame(page, "odd 5 ns, x").locator("title").textContent(), / \(1,234,567,890 ns, /);
  assert.equal(await said(draw("main;b 1500 4500000\n", "svg", "--countname", "ns"), "b"), "Function: b (4.50 ms, 100.00%; was 1.50 µs, 100.00%: 0.00 points, ×3000)");
});

test("fluid", async page => {
  await page.goto(simple);
  await widen(page, 520, 700);
  near((await box(page, "main")).width, 450, "narrower");
  await widen(page, 2020, 700);
  near((await box(page, "main")).width, 1800, "wider");
});

test("labels-stay-inside", async page => {
  const name = "namespace::some_class<int, std::string>::operator()";
  await page.goto(draw(`${name};${name.repeat(40)} 30\n日本語の関数の名前はとても長い 3\nx 60\n`, "svg"));
  for (const width of [400, 900, 1500]) {
    await widen(page, width, 500);
    const over = await page.evaluate(() => [...document.querySelectorAll("#frames > g")].filter(g => {
      const text = g.querySelector("text"), rect = g.querySelector("rect");
      return text && text.textContent && text.getBoundingClientRect().right > rect.getBoundingClientRect().right + 1;
    }).map(g => g.textContent.slice(0, 50)));
    assert.deepEqual(over, [], "at " + width);
  }
});

test("dark", async page => {
  await page.goto(simple);
  assert.equal(await page.locator("#back").evaluate(r => getComputedStyle(r).fill), "rgb(23, 25, 30)");
  if (inFirefox) return;
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await page.locator("#back").evaluate(r => getComputedStyle(r).fill), "rgb(255, 255, 255)");
});

// Labels on every palette and on every colour of a change, whole, dimmed and found.
for (const scheme of ["light", "dark"])
test("contrast-" + scheme, async page => {
  const many = Array.from({ length: 60 }, (_, i) => `zoomed_${i % 3 ? i : 0};Name::space${i}<int>;lib/f${i * 7}_[${"kjiw"[i % 4]}];[unknown${i}] 1\n`).join("");
  const change = Array.from({ length: 60 }, (_, i) => `zoomed_0;f${i} ${30} ${i}\n`).join("");
  const pictures = palettes.map(name => [name, draw(many, "svg", "--colors", name)]);
  pictures.push(["change", draw(change, "svg")], ["diffusion", draw(many, "svg", "--colordiffusion")], ["yellow", draw(many, "svg", "--bgcolors", "yellow")],
                ["background", draw(many, "svg", "--bgcolors", "#ffffff")]);
  for (const [name, url] of pictures) {
    await page.goto(url);
    const look = () => page.evaluate(() => {
      const back = getComputedStyle(document.getElementById("back")).fill;
      return [...document.querySelectorAll("#frames > g")].filter(g => g.querySelector("text")?.textContent && getComputedStyle(g).display !== "none").map(g => {
        const rect = getComputedStyle(g.querySelector("rect")), text = getComputedStyle(g.querySelector("text"));
        return [text.fill, rect.fill, +rect.opacity, back.startsWith("url") ? "rgb(238, 238, 176)" : back];
      });
    });
    const seen = await look();
    await frame(page, "zoomed_0").evaluate(g => g.dispatchEvent(new MouseEvent("click", { bubbles: true })));
    seen.push(...await look());
    await page.fill("#search", "zoomed|lib");
    seen.push(...await look());
    assert.ok(seen.length > 20 && seen.some(([, , opacity]) => opacity < 0.6), "labels, and dimmed ones");
    for (const [text, fill, opacity, back] of seen) {
      const got = contrast(text, fill, opacity, back);
      assert.ok(got >= 4.5, `${name}: ${text} on ${fill} at ${opacity} over ${back}: ${got.toFixed(2)}`);
    }
  }
}, "the colours are the file's, and Chromium was asked");

test("hostile-diff", async page => {
  await page.goto(compare(hostile.map(name => `root;${name} 10\n`).join(""), hostile.map((name, i) => `root;${name} ${i + 1}\n`).join(""), "svg"));
  const titles = await page.evaluate(() => [...document.querySelectorAll("#frames > g > title")].map(t => t.textContent));
  for (const name of hostile) assert.ok(titles.some(t => t.startsWith(shownName(name) + " (")), "as given, or as an escape: " + name);
  await page.fill("#search", "script");
  assert.equal(await page.evaluate(() => window.ran), undefined, "nothing ran");
  assert.equal(await page.locator("#frames script, #frames img, #frames foreignObject").count(), 0);
});

test("still", async page => {
  await page.goto(simple);
  near((await box(page, "main")).width, 1180 * 0.9, "a picture without scripts");
  assert.equal(await frame(page, "parse").locator("text").textContent(), "parse");
});

test("hostile-names", async page => {
  const longest = "<x>".repeat(33000);
  const names = [...hostile, longest];
  await page.goto(draw(names.map(name => `root;${name};leaf 10\n`).join(""), "svg"));
  const titles = await page.evaluate(() => [...document.querySelectorAll("#frames > g > title")].map(t => t.textContent));
  for (const name of names)
    assert.ok(titles.some(t => t.startsWith(shownName(name) + " (10 samples")), "as given, or as an escape: " + name.slice(0, 40));
  for (let i = 0; i < await page.locator("#frames > g").count(); i += 3)
    await page.evaluate(k => document.querySelectorAll("#frames > g")[k].dispatchEvent(new MouseEvent("click", { bubbles: true })), i);
  await page.fill("#search", "script|\\W");
  await page.fill("#search", "__proto__");
  assert.equal(await page.evaluate(() => window.ran), undefined, "nothing ran");
  assert.equal(await page.locator("#frames script, #frames img, #frames foreignObject").count(), 0);
});

test("hostile-bytes", async page => {
  const bytes = Buffer.concat([Buffer.from("root;ctrl\x01\x02\x1b[31m\x7f;leaf 10\nroot;bad"), Buffer.from([0xff, 0xfe, 0x80, 0xc0, 0xed, 0xa0, 0x80]),
                               Buffer.from(";leaf 10\nroot;\xa0nbsp 10\n", "latin1")]);
  await page.goto(draw(bytes, "svg"));
  const titles = await page.evaluate(() => [...document.querySelectorAll("#frames > g > title")].map(t => t.textContent));
  assert.ok(titles.includes("ctrl\\x01\\x02\\x1b[31m\\x7f (10 samples, 33.33%)"), "control characters");
  assert.ok(titles.some(t => t.startsWith("bad\\xff\\xfe\\x80\\xc0\\xed\\xa0\\x80 (")), "bytes that are no UTF-8");
});

test("deep", async page => {
  const depth = 2000;
  await page.goto(draw(Array.from({ length: depth }, (_, i) => "f" + i).join(";") + " 7\n", "svg"));
  await page.evaluate(() => document.querySelectorAll("#frames > g")[1500].dispatchEvent(new MouseEvent("click", { bubbles: true })));
  assert.equal(await page.locator("#frames > g.v").count(), depth + 1);
});

test("very-deep", async page => {
  const depth = 100000, names = Array.from({ length: depth }, (_, i) => "f" + i);
  await page.goto(draw(names.join(";") + " 7\n", "svg", "--minwidth", "0"));
  const inSight = () => page.evaluate(() => [...document.querySelectorAll("#frames > g")].filter(g => {
    const box = g.getBoundingClientRect();
    return box.height && box.bottom > 0 && box.top < innerHeight;
  }).map(g => g.querySelector("title").textContent.split(" ")[0]));
  const laidOut = () => page.locator("#frames > g").count();
  await page.waitForFunction(() => [...document.querySelectorAll("#frames > g > title")].some(t => t.textContent.startsWith("all ")));
  assert.ok((await inSight()).includes("f0"), "it opens where the root is, at the bottom");
  assert.ok(await laidOut() < 500, "only what is near is laid out");
  await page.evaluate(() => scrollTo(0, 0));
  await page.waitForFunction(() => [...document.querySelectorAll("#frames > g > title")].some(t => t.textContent.startsWith("f99999 ")));
  assert.ok((await inSight()).includes("f99999"), "and the leaves are at the top");
  await page.evaluate(() => scrollTo(0, 1e9));
  await page.waitForFunction(() => [...document.querySelectorAll("#frames > g > title")].some(t => t.textContent.startsWith("all ")));
  assert.ok(await laidOut() < 500);
  await frame(page, "f4").evaluate(g => g.dispatchEvent(new MouseEvent("click", { bubbles: true })));
  assert.ok((await inSight()).includes("f4"), "zoomed");
  assert.equal(query(page).get("y"), "5");
  await page.keyboard.press("Escape");
  await page.fill("#search", "^f77$");
  assert.equal(await page.locator("#frames > g.m").count(), 1);
});

test("icicle", async page => {
  await page.goto(draw(stacks, "svg", "--inverted"));
  assert.ok((await box(page, "main")).y > (await box(page, "all")).y);
  await page.locator("#frames > g[tabindex]").focus();
  await page.keyboard.press("ArrowDown");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^app /);
});

await runAll("svg", { dark: { colorScheme: "dark" }, "contrast-dark": { colorScheme: "dark" }, "contrast-light": { colorScheme: "light" }, still: { javaScriptEnabled: false } });
