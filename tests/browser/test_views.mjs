// The page's call tree, source, heat map and thread chooser, at all sizes.
import { assert, compare, draw, inFirefox, runAll, test } from "./harness.mjs";
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

test("call-tree-diff", async page => {
  await open(page, compare("a;b 60\na;c 40\n", "a;b 20\na;d 80\n", "html", "--html"));
  await view(page, "calltree");
  await page.locator("#tree-rows").focus();
  await page.keyboard.press("*");
  assert.deepEqual(await treeRows(page), ["▾a 100 100.00% 100.00% 0.00", "-d 80 80.00% 0.00% +80.00 80 80.00%", "-b 20 20.00% 60.00% -40.00 20 20.00%", "-c 0 0.00% 40.00% -40.00"]);
});

await runAll("views");
