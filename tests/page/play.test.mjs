// The Play view: filters match the command's, answers come with their reasons, and anything typed, pasted or opened is
// kept and treated as keys only.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import {
  becomes,
  disconnect,
  eventually,
  focused,
  noSeriousFindings,
  noSidewaysScrolling,
  playground,
  tableOf,
  tabTo,
  tasks,
  words,
} from "./browser.mjs";
import { cities, numbered, PlayView, fileOf } from "./play_view.mjs";

const { test, command, folder, url } = playground();

/** A file for a file input. */

// ---- the filter ----

test(
  "A filter gives the same answers in the page and in the command",
  { limit: 60, journey: true },
  async (page) => {
    const view = new PlayView(page);
    const at = (name) => path.join(folder, name);
    await view.open();
    await view.field("Keys (n)").fill("40");
    await view.field("FPR (p)").fill("20%");
    await view.layout.selectOption("blocked");
    await view.told(/New filter: 512 bits/);
    const present = ["alice", "bob", "carol", "München", "北京", "a b", "<b>"];
    for (const one of present) await view.add(one);
    await view.addresses.fill("30");
    await view.press("Add random addresses");
    await view.told(/Added 30 keys/);
    const all = [...present, ...Array.from({ length: 25 }, (_, i) => `absent ${i}`)];
    const maybe = [];
    for (const one of all) if ((await view.ask(one)) === "maybe") maybe.push(one);
    await view.download(at("made.bloom"));
    fs.writeFileSync(at("all.txt"), `${all.join("\n")}\n`);

    const said = (await command("check", "made.bloom", "all.txt")).split("\n").slice(0, -1);

    assert.deepEqual(said, maybe);
    assert.deepEqual(said.slice(0, present.length), present);

    await command("build", "-o", "built.bloom", "-n", "100", "-p", "0.001", { input: "alice\nbob\n" });
    await page.getByLabel("Open a file").setInputFiles(at("built.bloom"));
    await view.told(/Opened built\.bloom/);
    assert.equal(await view.ask("alice"), "maybe");
    assert.equal(await view.ask("mallory"), "no");
    await view.shows("The page does not know which keys are in this file.");
    await page.getByLabel("Open a file").setInputFiles(fileOf("notes.txt", "no filter"));
    await becomes(page.getByRole("alert"), /^notes\.txt: not a bloomery/);
  },
);

test("Size, hashes and FPR follow from each other, and invalid numbers are reported", async (page) => {
  const view = new PlayView(page);
  const suggested = (name) => () => view.field(name).getAttribute("placeholder");
  await view.open("/#play?layout=classic&capacity=20&rate=0.05");
  await becomes(suggested("Bits (m)"), "127");
  await becomes(suggested("Hashes (k)"), "4");

  await view.field("Bits (m)").fill("254");
  await becomes(suggested("FPR (p)"), /^0\.\d+/);
  assert.equal(await view.field("FPR (p)").inputValue(), "");
  await view.field("Hashes (k)").fill("1");
  await becomes(suggested("FPR (p)"), /^7\.\d+/);
  await view.field("FPR (p)").fill("5%");
  assert.equal(await view.field("Bits (m)").inputValue(), "");
  await view.field("Keys (n)").fill("1,234,567"); // as the page writes it
  await view.told(/New filter: 7,712,314 bits, 4 hashes/); // as `bloomery plan` has it for classic

  const invalid = (name) => () => view.field(name).getAttribute("aria-invalid");
  await page.goto("/#play?scheme=pharo&capacity=10&rate=7&keys=Madrid");
  await view.shows("Enter a number between 0 and 1, or a percentage");
  await view.field("FPR (p)").fill("0.1");
  await view.holds("Madrid");
  await becomes(view.setBits, /^4 of 48/);

  await view.open("/#play");
  for (const [name, typed, expected] of [
    ["Keys (n)", "many", /^Enter a whole number of at least 1, in digits\.$/],
    ["Keys (n)", "1,23", /^Enter a whole number of at least 1, in digits\.$/],
    ["Keys (n)", "1e15", /at most 1,073,741,824 bits/],
    ["FPR (p)", "200", /between 0 and 1/],
    ["Bits (m)", "-3", /a whole number/],
  ]) {
    const before = await view.field(name).inputValue();
    await view.field(name).fill(typed);
    await becomes(invalid(name), "true");
    const said = await view.field(name).getAttribute("aria-describedby");
    await becomes(page.locator(`[id="${said}"]`), expected);
    assert.equal(await view.field(name).inputValue(), typed);
    await view.field(name).fill(before);
    await becomes(invalid(name), "false");
  }
});

test("The table of layouts and its reasons are those of the command", async (page) => {
  const view = new PlayView(page);
  for (const [n, p] of [
    [100_000, 0.01],
    [1000, 0.001],
    [2_000_000, 1e-7],
  ]) {
    const { layouts, chosen } = JSON.parse(await command("plan", "-n", String(n), "-p", String(p), "--json"));
    await page.goto("about:blank");
    await view.open(`/#play?capacity=${n}&rate=${p}`);

    const [, ...rows] = await tableOf(page.getByRole("region", { name: /^Layouts for / }).first());

    assert.deepEqual(
      rows.map(([name, bits, , reason]) => [name, bits, reason]),
      layouts.map((one) => [
        one.layout === chosen ? `${one.layout} chosen` : one.layout,
        one.bits_a_key.toFixed(2),
        one.reason,
      ]),
    );
  }
});

test("The keys are carried over to another filter, and the reader continues to type", async (page) => {
  const view = new PlayView(page);
  const precedes = (a, b) => a.evaluate((node, other) => (node.compareDocumentPosition(other) & 4) !== 0, b);
  await view.open();
  await view.add("alice");
  await view.layout.selectOption("split_block");
  await view.press("Create filter");
  await view.told(/One key carried over/);
  await becomes(view.setBits, /^8 of 256/);
  await view.holds("alice");
  await view.field("Keys (n)").fill("200");
  await view.field("Keys (n)").press("Enter"); // in place of the button
  await view.linkIs(/capacity=200&.*keys=alice/);

  await view.open(cities);
  await view.holds("Madrid", "Barcelona");
  const order = [view.key, view.bits, view.field("Keys (n)"), view.button("Copy link")];
  for (let i = 1; i < order.length; ++i)
    assert(await precedes(order[i - 1], await order[i].elementHandle()), `${order[i]} follows`);
  await view.field("Keys (n)").fill("100");
  await view.button("Create filter").press("Enter");
  await view.told(/2 keys carried over/);
  await focused(view.key);
});

// ---- keys ----

test("Answers come with their reasons, and a removal by force with the keys that it loses", async (page) => {
  const view = new PlayView(page);
  await view.open(cities);
  await view.key.pressSequentially("Berlin");
  await view.shows("The filter would answer no. Bits not set: 2.");
  await view.key.fill("Roma");
  await view.shows("The filter would answer maybe");
  const bitsOfRoma = page.getByText("The bits of Roma").locator("xpath=..").getByRole("listitem");
  await becomes(() => bitsOfRoma.allInnerTexts(), ["bit 36: already set"]);
  assert.equal(await view.ask("Roma"), "maybe");
  await view.told(/false positive: Roma was never added\. Bit 36 was set by Barcelona\./);

  await view.press("Remove Madrid");
  await view.shows(/may remove other keys, too/);
  await view.holds("Madrid", "Barcelona");
  await view.press("Remove by force: Madrid");
  await view.told(/Cleared bits: 18, 9, 48, 39\. Lost with it: Barcelona\./);
  assert.equal(await view.ask("Barcelona"), "no");
  await view.told(/but that is wrong: Barcelona was added/);
});

test("After a lookup, the text of the key field is selected for the next key", async (page) => {
  const view = new PlayView(page);
  await view.open(cities);
  await view.ask("Berlin");
  await page.keyboard.type("Madrid");
  assert.equal(await view.key.inputValue(), "Madrid");
  await view.press("Look up");
  await view.told(/Maybe.*Madrid/);
  await focused(view.key);
  await page.keyboard.type("Oslo");
  await page.keyboard.press("Shift+Enter");
  await view.told(/Oslo/);
  assert.equal(await view.key.inputValue(), "Oslo");
});

test("Undo reverts the last step, and Clear reverts all", async (page) => {
  const view = new PlayView(page);
  await view.open(cities);
  const before = await view.setBits.innerText();
  await view.add("Paris");
  assert.notEqual(await view.setBits.innerText(), before);
  await view.undo();
  assert.equal(await view.setBits.innerText(), before);
  await view.holds("Madrid", "Barcelona");
  await view.press("Clear");
  await view.told(/empty again/);
  assert.match(await view.setBits.innerText(), /^0 of 48/);

  // Keys that are typed faster than the server answers.
  const all = Array.from({ length: 15 }, (_, i) => `k${i}`);
  await view.key.focus();
  for (const one of all) {
    await page.keyboard.insertText(one);
    await page.keyboard.press("Enter");
  }
  await view.holds(...all);
  assert.equal(await view.key.inputValue(), "");
});

const large = "/#play?layout=split_block512&capacity=600000&rate=0.01";

test("Many pasted lines are one step for Undo, and can be stopped", { limit: 60 }, async (page) => {
  const view = new PlayView(page);
  const { hold } = await tasks(page);
  const count = 120_000; // two requests
  await view.open(large);
  await view.add("alice");
  const alone = await view.setBits.innerText();

  await view.paste(numbered(count, "\r\n"));
  await page.getByRole("progressbar").waitFor();
  await view.told(/Added 120,000 keys/, 30);
  assert.equal(await view.ask(`line ${count - 1}`), "maybe");
  await view.undo();
  await becomes(view.setBits, alone);

  await view.undo();
  await becomes(view.setBits, /^0 of/);

  const adding = await hold(/add$/); // or it ends before Stop can be pressed
  await view.paste(numbered(500_000));
  await view.press("Stop");
  await adding.go();
  await view.told(/^\+\s*Stopped after [12]00,000 keys/, 30);
  assert.equal(await view.ask("line 0"), "maybe");
});

test("Keys may be any text or bytes, and are never HTML", async (page) => {
  const view = new PlayView(page);
  const addLines = (name, content) => page.getByLabel("Add the lines of a file").setInputFiles(fileOf(name, content));
  const evil = `<img src=x onerror="document.title='broken'"><b>bold</b>`;
  await view.open();
  const notText = Buffer.from([0xff, 0xfe, 0x0a]);
  await addLines("keys.txt", Buffer.concat([Buffer.from("München\r\n\nBerlin\n"), notText, Buffer.from("end")]));
  await view.holds("München", "Berlin", "base64://4=", "end");
  await view.press("Remove base64://4=");
  await view.press("Remove by force: base64://4=");
  await view.holds("München", "Berlin", "end");

  await view.add(evil);
  await view.ask(evil);
  await view.bits.focus();
  await page.keyboard.press("ArrowRight");
  await addLines("<i>.txt", `${evil}!\n`);
  await view.holds("München", "Berlin", "end", evil, `${evil}!`);
  assert.equal(await page.locator("main img, main b b, main i i").count(), 0);
  assert.notEqual(await page.title(), "broken");
});

test("Counting filters, windows and scalable filters have controls of their own", async (page) => {
  const view = new PlayView(page);
  await view.open("/#play?layout=counting&capacity=20&rate=0.05&keys=alice,bob,alice");
  await view.holds("alice\u00a0×2", "bob");
  await view.linkIs(/keys=alice%2Cbob/);
  await view.press("Remove alice");
  await view.told(/Removed alice/);
  await becomes(() => page.url().includes("keys="), false); // full counters are not decremented: the keys do not tell
  assert.equal(await view.ask("alice"), "maybe");
  await view.press("Remove alice");
  await view.holds("bob");
  assert.equal(await view.ask("alice"), "no");
  assert.match(await view.setBits.innerText(), /counters/);

  await view.open("/#play?window_milliseconds=60000&capacity=50&rate=0.05&keys=alice");
  const generations = page.getByText(/^keys, newest first: /);
  await generations.waitFor(); // the log still has the answers of the previous filter until then
  assert.equal(await view.ask("alice"), "maybe");
  await becomes(generations, /: 1\b/);
  await view.press("Advance 8.57 s"); // one generation
  await becomes(generations, /: 0 · 1\b/);
  await view.press("Advance 60 s");
  await view.told(/clock advanced by 60 seconds/);
  await view.press("Advance 60 s");
  await becomes(async () => (await view.names()).join(), /alice\s+forgotten/);
  assert.equal(await view.ask("alice"), "no");

  await view.open("/#play?grows=true&capacity=20&rate=0.05");
  await view.told(/New filter/);
  await view.press("Add random addresses");
  await view.shows(/^in [2-9] layers$/);
  await becomes(() => view.button("Download").isDisabled(), true);
  await view.shows(/no single file/);
});

test("False-positive rates are measured, drawn and written without powers of ten", async (page) => {
  const view = new PlayView(page);
  await view.open("/#play?layout=classic&capacity=20&rate=0.05");
  await view.addresses.fill("20");
  await view.press("Add random addresses");
  await view.press("Test 100,000 keys that were never added");
  await view.told(/of 100,000 keys that were never added were let through: \d/);
  const found = view.button(/^Look up \S/).first();
  await found.click();
  await view.told(/false positive: \S+@\S+ was never added\. Bit \d+ was set by \S+@/);

  await view.open("/#play?layout=classic&capacity=100&rate=0.00000086");
  await becomes(view.statistics, /0\.000086%\s+1 in 1\.16 million/);

  await view.open("/#play?layout=classic&capacity=10&bits=16&probes=1");
  await becomes(view.setBits, /of 16 /);
  await view.addresses.fill("100");
  await view.press("Add random addresses");
  await becomes(view.statistics, /Exact FPR\s+(9\d(\.\d+)?|100)%/);
  assert.doesNotMatch(await view.statistics.innerText(), /1 in 1(\.[0-4]\d*)?\b/); // no reciprocal near 1

  await view.open(cities);
  const rows = () => tableOf(page.locator("figure"));
  await becomes(async () => (await rows()).at(-1)[0], "16");
  assert.deepEqual((await rows()).slice(0, 2), [
    ["keys", "false-positive rate"],
    ["0", "0"],
  ]);
});

test("The numbers of a chart that could not be loaded are there, and it can be loaded again", { expects: [/ERR_|NS_ERROR/] }, async (page) => {
  const view = new PlayView(page);
  const [main] = /index-[\w-]+\.js/.exec(await (await fetch(url())).text());
  // The library of the charts is the other script of this name.
  const reconnect = await disconnect(
    page,
    (to) => /\/index-[\w-]+\.js$/.test(to.pathname) && !to.pathname.endsWith(main),
  );
  await view.open(cities);
  await becomes(page.getByRole("alert"), new RegExp(words("en")("nav.broken")));
  assert.equal((await tableOf(page.locator("figure"))).at(-1)[0], "16");
  await reconnect();
  await view.press(words("en")("nav.reload"));
  await page.locator("figure svg").waitFor();
  await view.holds("Madrid", "Barcelona");
});

// ---- the picture ----

test("Keys and zooming explore the bits without a mouse", async (page) => {
  const view = new PlayView(page);
  const said = () => view.bits.getAttribute("aria-valuetext");
  await view.open(cities);
  await tabTo(page, view.bits);
  await becomes(said, "Bit 1 is not set.");
  for (let i = 1; i < 9; ++i) await page.keyboard.press("ArrowRight");
  await becomes(said, "Bit 9 was set by Madrid.");
  await page.keyboard.press("End");
  await becomes(said, "Bit 48 was set by Madrid, Barcelona.");
  await view.key.focus();
  assert.equal(await page.getByText("Bit 48 was set by").count(), 0);

  await view.open("/#play?layout=blocked&capacity=1000000&rate=0.01");
  await view.shows("Each square stands for 512 bits.");
  await tabTo(page, view.bits);
  await becomes(said, /0 of 512 set/);
  await page.keyboard.press("Enter");
  await view.shows("Each square stands for 64 bits.");
  await page.keyboard.press("Enter");
  await becomes(view.setBits, /^(?!.*Each square)/s);
  await view.press("Reset zoom");
  await view.shows("Each square stands for 512 bits.");
});

test("The mouse shows which keys set a bit, zooms and drags, and insertions are drawn", async (page) => {
  const view = new PlayView(page);
  await view.open("/#play?layout=classic&capacity=200&rate=0.01");
  await view.press("Add random addresses");
  await view.told(/Added 100 keys/);
  await view.canvas.scrollIntoViewIfNeeded();
  const place = await view.canvas.boundingBox();
  const [x, y] = [place.x + place.width / 2, place.y + 100];
  const bit = async () => {
    const said = page.getByText(/^Bit \d+ (is not set|was set by \S+@\S+)/);
    return Number((await said.innerText({ timeout: 1000 })).split(" ")[1]);
  };
  await page.mouse.move(x, y);
  const first = await eventually(bit);
  await page.mouse.down();
  await page.mouse.move(x, y - 90, { steps: 4 });
  await page.mouse.up();
  await page.mouse.move(x, y);
  const columns = await view.canvas.evaluate((canvas) => Number(canvas.dataset.columns));
  await eventually(async () => assert((await bit()) > first + columns));
  await page.mouse.wheel(0, 400);
  await view.button("Reset zoom").waitFor();

  const picture = () => view.canvas.evaluate((canvas) => canvas.toDataURL());
  await view.open("/#play?layout=classic&capacity=10000&rate=0.01");
  await view.told(/New filter/); // otherwise the first key may be added to the previous filter
  for (let i = 0; i < 3; ++i) {
    const before = await picture();
    await view.add(`key ${i}`);
    await eventually(async () => assert.notEqual(await picture(), before));
  }
});

/** The colors of the first 48 cells in the picture. */
const drawn = (canvas) =>
  canvas.evaluate((node) => {
    const { columns, size, left } = Object.fromEntries(Object.entries(node.dataset).map(([k, v]) => [k, Number(v)]));
    const ctx = node.getContext("2d");
    const dense = node.width / node.getBoundingClientRect().width;
    return Array.from({ length: 48 }, (_, cell) => {
      // Beside the number of the cell.
      const [x, y] = [left + (cell % columns) * size + size / 2, Math.floor(cell / columns) * size + size / 4];
      const { data } = ctx.getImageData(Math.round(x * dense), Math.round(y * dense), 1, 1);
      return `#${[...data.slice(0, 3)].map((n) => n.toString(16).padStart(2, "0")).join("")}`;
    });
  });

for (const look of [{ dark: false }, { dark: true }]) {
  test(`The picture shows the bits that the filter has, ${look.dark ? "dark" : "light"}`, look, async (page) => {
    const view = new PlayView(page);
    await view.open("/#play?layout=classic&capacity=10&bits=48&probes=4&keys=Madrid,Barcelona");
    const [set, unset] = await page.evaluate(() =>
      ["--accent", "--unset"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name)),
    );
    /** The picture has the bits that the command names for these keys. */
    const isDrawn = async (...keys) => {
      const sized = ["--layout", "classic", "-n", "10", "-m", "48", "-k", "4"];
      await command("build", ...sized, "-o", `${look.dark}-${keys.length}.bloom`, { input: keys.map((key) => `${key}\n`).join("") });
      const told = keys.length > 0 && JSON.parse(await command("explain", "--json", `${look.dark}-${keys.length}.bloom`, ...keys));
      const bits = new Set((told.keys ?? []).flatMap((key) => key.bits.map((one) => one.bit)));
      await becomes(() => drawn(view.canvas), Array.from({ length: 48 }, (_, bit) => (bits.has(bit) ? set : unset)));
    };

    await isDrawn("Madrid", "Barcelona");
    await view.add("Paris");
    await isDrawn("Madrid", "Barcelona", "Paris");
    await view.press("Clear");
    await view.told(/empty again/);
    await isDrawn();
  });
}

// ---- languages, sizes, accessibility ----

test("The log and the problems follow the language", async (page) => {
  const view = new PlayView(page);
  await view.open();
  await view.add("alice");
  await view.told(/It set bits \d+, \d+/);
  await page.getByRole("button", { name: /show this page in Chinese/ }).click();
  await becomes(page.locator("ol li").first(), /第 \d+、\d+/);
  const hashes = view.field("哈希数 k");
  await hashes.fill("many");
  await view.shows("请用数字输入不小于 1 的整数。");
  await hashes.fill("999");
  await view.shows(/^该值无效（expected a whole number, 1 to 255, found 999）$/);
});

for (const look of [
  { language: "en", dark: false },
  { language: "zh", dark: true },
  { language: "en", dark: false, width: 360, height: 740 },
]) {
  test(`The view is accessible and fits: ${JSON.stringify(look)}`, look, async (page) => {
    const view = new PlayView(page);
    await page.goto(`${cities},${"a-very-long-key-".repeat(20)}`);
    await page.locator("figure svg").waitFor();
    const key = page.locator("form input").first();
    for (const [typed, answer] of [
      ["x".repeat(200), "li"],
      ["Roma", "li.wrong"],
    ]) {
      await key.fill(typed);
      await key.press("Shift+Enter");
      await page.locator(answer, { hasText: typed }).first().waitFor();
      await noSidewaysScrolling(page);
    }
    await noSeriousFindings(page);
    await page.goto("/#play?capacity=2000000&rate=1e-7");
    await page.getByRole("cell", { name: "213%" }).waitFor();
    await noSidewaysScrolling(page);
    await noSeriousFindings(page);
  });
}
