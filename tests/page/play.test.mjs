// The Play view: filters match the command's, answers come with their reasons, and anything typed, pasted or opened is
// kept and treated as keys only.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { eventually, noSeriousFindings, noSidewaysScrolling, playground, tabTo, tableOf } from "./browser.mjs";
import {
  add,
  ask,
  bits,
  button,
  cities,
  field,
  holds,
  key,
  names,
  open,
  paste,
  setBits,
  story,
  told,
} from "./play_view.mjs";

const { test, command, folder, url } = playground();

async function download(page, name) {
  const file = path.join(folder, name);
  const coming = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download" }).click();
  await (await coming).saveAs(file);
  return file;
}

/** A file of lines, for a file input. */
const lines = (name, content) => ({ name, mimeType: "text/plain", buffer: Buffer.from(content) });

// ---- the filter ----

test("A filter from the page gives the same answers in the command", { limit: 60 }, async (page) => {
  await open(page);
  await field(page, "Keys (n)").fill("40");
  await field(page, "FPR (p)").fill("20%");
  await page.getByRole("combobox", { name: "Layout" }).selectOption("blocked");
  const present = ["alice", "bob", "carol", "München", "北京", "a b", "<b>"];
  await told(page, /New filter: 512 bits/);
  for (const one of present) await add(page, one);
  await page.getByRole("textbox", { name: "Number of addresses" }).fill("30");
  await button(page, "Add random addresses").click();
  await told(page, /Added 30 keys/);
  const all = [...present, ...Array.from({ length: 25 }, (_, i) => `absent ${i}`)];
  const maybe = [];
  for (const one of all) if ((await ask(page, one)) === "maybe") maybe.push(one);
  const file = await download(page, "made.bloom");
  fs.writeFileSync(path.join(folder, "all.txt"), `${all.join("\n")}\n`);

  const said = (await command("check", file, "all.txt")).split("\n").slice(0, -1);

  assert.deepEqual(said, maybe);
  assert.deepEqual(said.slice(0, present.length), present);
});

test("A file made by the command can be opened and queried", async (page) => {
  fs.writeFileSync(path.join(folder, "keys.txt"), "alice\nbob\n");
  await command("build", "-o", "built.bloom", "-n", "100", "-p", "0.001", "keys.txt");
  await open(page);

  await page.getByLabel("Open a file").setInputFiles(path.join(folder, "built.bloom"));

  await told(page, /Opened built\.bloom/);
  assert.equal(await ask(page, "alice"), "maybe");
  assert.equal(await ask(page, "mallory"), "no");
  await page.getByText("The page does not know which keys are in this file.").waitFor();
});

test("A file that is not a filter is refused, with its name", { expects: [/status of 422/] }, async (page) => {
  await open(page);
  await page.getByLabel("Open a file").setInputFiles(lines("notes.txt", "no filter"));
  await eventually(async () => assert.match(await page.getByRole("alert").innerText(), /^notes\.txt: not a bloomery/));
});

test("Size and hashes follow from keys and FPR, and the FPR from the size", async (page) => {
  await open(page, "/#play?layout=classic&capacity=20&rate=0.05");
  const faint = (name) => field(page, name).getAttribute("placeholder");
  await eventually(async () => assert.deepEqual([await faint("Bits (m)"), await faint("Hashes (k)")], ["127", "4"]));

  await field(page, "Bits (m)").fill("254");

  await eventually(async () => assert.match(await faint("FPR (p)"), /^0\.\d+/));
  assert.equal(await field(page, "FPR (p)").inputValue(), "");
  await field(page, "Hashes (k)").fill("1");
  await eventually(async () => assert.match(await faint("FPR (p)"), /^7\.\d+/));
  await field(page, "FPR (p)").fill("5%");
  assert.equal(await field(page, "Bits (m)").inputValue(), "");
});

test(
  "An invalid number is reported beside its field, and the input stays",
  { expects: [/status of 400/] },
  async (page) => {
    await open(page);
    for (const [name, typed, expected] of [
      ["Keys (n)", "many", /^Enter a whole number of at least 1, in digits\.$/],
      ["Keys (n)", "1e15", /at most 1,073,741,824 bits/],
      ["FPR (p)", "200", /between 0 and 1/],
      ["Bits (m)", "-3", /a whole number/],
    ]) {
      const before = await field(page, name).inputValue();
      await field(page, name).fill(typed);
      await eventually(async () => assert.equal(await field(page, name).getAttribute("aria-invalid"), "true"));
      const said = await field(page, name).getAttribute("aria-describedby");
      assert.match(await page.locator(`[id="${said}"]`).innerText(), expected);
      assert.equal(await field(page, name).inputValue(), typed);
      await field(page, name).fill(before);
      await eventually(async () => assert.equal(await field(page, name).getAttribute("aria-invalid"), "false"));
    }
  },
);

test("The button creates another filter, and the keys are carried over", async (page) => {
  await open(page);
  await add(page, "alice");
  await page.getByRole("combobox", { name: "Layout" }).selectOption("split_block");
  await button(page, "Create filter").click();
  await told(page, /One key carried over/);
  await eventually(async () => assert.match(await setBits(page).innerText(), /^8 of 256/));
  await holds(page, ["alice"]);
});

test("In keyboard order, the key and the bits precede the controls, and the key gets the focus", async (page) => {
  await open(page, cities);
  const before = (a, b) => a.evaluate((node, other) => (node.compareDocumentPosition(other) & 4) !== 0, b);
  const order = [key(page), bits(page), field(page, "Keys (n)"), button(page, "Copy link")];
  for (let i = 1; i < order.length; ++i) assert.ok(await before(order[i - 1], await order[i].elementHandle()), `${i}`);
  await field(page, "Keys (n)").fill("100");
  await button(page, "Create filter").press("Enter");
  await told(page, /2 keys carried over/);
  await eventually(async () => assert.ok(await key(page).evaluate((node) => node === document.activeElement)));
});

test("Enter in a field of the controls creates the filter", async (page) => {
  await open(page);
  await add(page, "alice");
  await field(page, "Keys (n)").fill("100");
  await field(page, "Keys (n)").press("Enter");
  await told(page, /One key carried over/);
  await eventually(async () => assert.match(page.url(), /capacity=100&.*keys=alice/));
});

test("A link with an invalid number can be corrected", async (page) => {
  await page.goto("/#play?scheme=pharo&capacity=10&rate=7&keys=Madrid");
  await page.getByText("Enter a number between 0 and 1, or a percentage").waitFor();
  await field(page, "FPR (p)").fill("0.1");
  await holds(page, ["Madrid"]);
  await eventually(async () => assert.match(await setBits(page).innerText(), /^4 of 48/));
});

// ---- keys ----

test("A typed key shows a preview of its answer", async (page) => {
  await open(page, cities);
  await key(page).pressSequentially("Berlin");
  await page.getByText("The filter would answer no. Bits not set: 2.").waitFor();
  await key(page).fill("Roma");
  await page.getByText("The filter would answer maybe").waitFor();
  await eventually(async () =>
    assert.deepEqual(
      await page.getByText("The bits of Roma").locator("xpath=..").getByRole("listitem").allInnerTexts(),
      ["bit 36: already set"],
    ),
  );
});

test("A false positive is reported with the keys that set its bits", async (page) => {
  await open(page, cities);
  assert.equal(await ask(page, "Roma"), "maybe");
  await told(page, /false positive: Roma was never added\. Bit 36 was set by Barcelona\./);
});

test("Keys typed faster than the server answers are all added, in order", async (page) => {
  await open(page);
  await key(page).focus();
  const all = Array.from({ length: 15 }, (_, i) => `k${i}`);
  for (const one of all) {
    await page.keyboard.insertText(one);
    await page.keyboard.press("Enter");
  }
  await holds(page, all);
  assert.equal(await key(page).inputValue(), "");
});

test("Undo reverts the last step, and Clear reverts all", async (page) => {
  await open(page, cities);
  const before = await setBits(page).innerText();
  await add(page, "Paris");
  assert.notEqual(await setBits(page).innerText(), before);
  await button(page, "Undo").click();
  await told(page, /was undone/);
  assert.equal(await setBits(page).innerText(), before);
  await holds(page, ["Madrid", "Barcelona"]);
  await button(page, "Clear").click();
  await told(page, /empty again/);
  assert.match(await setBits(page).innerText(), /^0 of 48/);
});

test("Many lines can be pasted and undone as one step", { limit: 90 }, async (page) => {
  await open(page, "/#play?layout=split_block512&capacity=250000&rate=0.01");
  const count = 230_000;
  await paste(page, Array.from({ length: count }, (_, i) => `a line that was pasted, number ${i}\r\n`).join(""));
  await page.getByRole("progressbar").waitFor();
  await eventually(async () => assert.match(await story(page).innerText(), /Added 230,000 keys/), 60);
  assert.equal(await ask(page, "a line that was pasted, number 229999"), "maybe");
  await button(page, "Undo").click();
  await eventually(async () => assert.match(await setBits(page).innerText(), /^0 of/), 30);
});

test("A long paste can be stopped", { limit: 60 }, async (page) => {
  await open(page, "/#play?layout=split_block512&capacity=600000&rate=0.01");
  let pressed;
  const stop = new Promise((resolve) => (pressed = resolve));
  let pieces = 0;
  await page.route("**/add", async (route) => {
    if (++pieces === 2) await stop; // or it ends before Stop can be pressed
    await route.continue();
  });
  await paste(page, Array.from({ length: 500_000 }, (_, i) => `line ${i}`).join("\n"));
  await button(page, "Stop").click();
  pressed();
  await eventually(async () => assert.match(await story(page).innerText(), /^\+\s*Stopped after [12]00,000 keys/), 30);
  assert.equal(await ask(page, "line 0"), "maybe");
});

test("The lines of a file are keys, even if they are not text", { expects: [/status of 409/] }, async (page) => {
  await open(page);
  const bytes = Buffer.concat([
    Buffer.from("München\r\n\nBerlin\n"),
    Buffer.from([0xff, 0xfe, 0x0a]),
    Buffer.from("end"),
  ]);
  await page.getByLabel("Add the lines of a file").setInputFiles(lines("keys.txt", bytes));
  await holds(page, ["München", "Berlin", "base64://4=", "end"]);
  await button(page, "Remove base64://4=").click();
  await button(page, "Remove by force: base64://4=").click();
  await holds(page, ["München", "Berlin", "end"]);
});

test("Keys are text, never HTML", async (page) => {
  const evil = `<img src=x onerror="document.title='broken'"><b>bold</b>`;
  await open(page);
  await add(page, evil);
  await ask(page, evil);
  await bits(page).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByLabel("Add the lines of a file").setInputFiles(lines("<i>.txt", `${evil}!\n`));
  await holds(page, [evil, `${evil}!`]);
  assert.equal(await page.locator("main img, main b b, main i i").count(), 0);
  assert.notEqual(await page.title(), "broken");
});

test(
  "Keys of a plain filter are removed only by force, with a report of lost keys",
  { expects: [/status of 409/] },
  async (page) => {
    await open(page, cities);
    await button(page, "Remove Madrid").click();
    await page.getByText(/may remove other keys, too/).waitFor();
    await holds(page, ["Madrid", "Barcelona"]);
    await button(page, "Remove by force: Madrid").click();
    await told(page, /Cleared bits: 18, 9, 48, 39\. Lost with it: Barcelona\./);
    assert.equal(await ask(page, "Barcelona"), "no");
    await told(page, /but that is wrong: Barcelona was added/);
  },
);

test("Keys can be removed from a counting filter", async (page) => {
  await open(page, "/#play?layout=counting&capacity=20&rate=0.05&keys=alice,bob,alice");
  await eventually(async () => assert.deepEqual(await names(page), ["alice\u00a0×2", "bob"]));
  await button(page, "Remove alice").click();
  await told(page, /Removed alice/);
  assert.equal(await ask(page, "alice"), "maybe");
  await button(page, "Remove alice").click();
  await holds(page, ["bob"]);
  assert.equal(await ask(page, "alice"), "no");
  assert.match(await setBits(page).innerText(), /counters/);
});

test("A window by time drops keys when time passes", async (page) => {
  await open(page, "/#play?window_milliseconds=60000&capacity=50&rate=0.05&keys=alice");
  assert.equal(await ask(page, "alice"), "maybe");
  await button(page, "Advance 60 s").click();
  await told(page, /clock advanced by 60 seconds/);
  await button(page, "Advance 60 s").click();
  await eventually(async () => assert.match((await names(page)).join(), /alice\s+forgotten/));
  assert.equal(await ask(page, "alice"), "no");
});

test("The smaller step of a window by time is a whole generation", async (page) => {
  await open(page, "/#play?window_milliseconds=60000&capacity=50&rate=0.05&keys=alice");
  const generation = page.getByText(/^keys, newest first: /);
  await eventually(async () => assert.match(await generation.innerText(), /: 1\b/));
  await button(page, "Advance 8.57 s").click();
  await eventually(async () => assert.match(await generation.innerText(), /: 0 · 1\b/));
});

test("The log follows the language, including its commas", async (page) => {
  await open(page);
  await add(page, "alice");
  await told(page, /It set bits \d+, \d+/);
  await page.getByRole("button", { name: /show this page in Chinese/ }).click();
  await eventually(async () => {
    const said = await page.locator("ol li").first().innerText();
    assert.match(said, /第 \d+、\d+/);
  });
});

test("A scalable filter shows its layers and why it cannot be downloaded", async (page) => {
  await open(page, "/#play?grows=true&capacity=20&rate=0.05");
  await button(page, "Add random addresses").click();
  await page.getByText(/^in [2-9] layers$/).waitFor();
  await eventually(async () => assert.ok(await button(page, "Download").isDisabled()));
  await page.getByText(/no single file/).waitFor();
});

test("False positives among absent keys are counted and can be looked up", async (page) => {
  await open(page, "/#play?layout=classic&capacity=20&rate=0.05");
  await page.getByRole("textbox", { name: "Number of addresses" }).fill("20");
  await button(page, "Add random addresses").click();
  await button(page, "Test 100,000 keys that were never added").click();
  await told(page, /of 100,000 keys that were never added were let through: \d/);
  await button(page, /^Look up \S/ /* the first that was found */)
    .first()
    .click();
  await told(page, /false positive: \S+@\S+ was never added\. Bit \d+ was set by \S+@/);
});

// ---- the picture ----

test("Arrow keys move from bit to bit and show which keys set it", async (page) => {
  await open(page, cities);
  await tabTo(page, bits(page));
  const said = () => bits(page).getAttribute("aria-valuetext");
  await eventually(async () => assert.equal(await said(), "Bit 1 is not set."));
  for (let i = 1; i < 9; ++i) await page.keyboard.press("ArrowRight");
  await eventually(async () => assert.equal(await said(), "Bit 9 was set by Madrid."));
  await page.keyboard.press("End");
  await eventually(async () => assert.equal(await said(), "Bit 48 was set by Madrid, Barcelona."));
  await key(page).focus();
  assert.equal(await page.getByText("Bit 48 was set by").count(), 0);
});

test("A square of several bits can be zoomed into", async (page) => {
  await open(page, "/#play?layout=blocked&capacity=1000000&rate=0.01");
  await page.getByText("Each square stands for 512 bits.").waitFor();
  await tabTo(page, bits(page));
  await eventually(async () => assert.match(await bits(page).getAttribute("aria-valuetext"), /0 of 512 set/));
  await page.keyboard.press("Enter");
  await page.getByText("Each square stands for 64 bits.").waitFor();
  await page.keyboard.press("Enter");
  await eventually(async () => assert.doesNotMatch(await setBits(page).innerText(), /Each square/));
  await button(page, "Reset zoom").click();
  await page.getByText("Each square stands for 512 bits.").waitFor();
});

test("The mouse shows which keys set a bit, zooms and drags", async (page) => {
  await open(page, "/#play?layout=classic&capacity=200&rate=0.01");
  await button(page, "Add random addresses").click();
  await told(page, /Added 100 keys/);
  await page.locator("canvas").scrollIntoViewIfNeeded();
  const place = await page.locator("canvas").boundingBox();
  const [x, y] = [place.x + place.width / 2, place.y + 100];
  await page.mouse.move(x, y);
  const said = await eventually(async () => {
    const text = await page.getByText(/^Bit \d+ (is not set|was set by \S+@\S+)/).innerText();
    return Number(text.split(" ")[1]);
  });
  await page.mouse.down();
  await page.mouse.move(x, y - 90, { steps: 4 });
  await page.mouse.up();
  await page.mouse.move(x, y);
  await eventually(async () =>
    assert.ok(Number((await page.getByText(/^Bit \d+ /).innerText()).split(" ")[1]) > said + 40),
  );
  await page.mouse.wheel(0, 400);
  await button(page, "Reset zoom").waitFor();
});

/** The colors of the cells in the picture, beside their numbers, and the page's colors by name. */
const colors = (page) =>
  page.locator("canvas").evaluate((canvas) => {
    const style = getComputedStyle(document.documentElement);
    const columns = Number(canvas.dataset.columns);
    const [size, left] = [Number(canvas.dataset.size), Number(canvas.dataset.left)];
    const ctx = canvas.getContext("2d");
    const dense = canvas.width / canvas.getBoundingClientRect().width;
    const hex = (data) => `#${[...data.slice(0, 3)].map((n) => n.toString(16).padStart(2, "0")).join("")}`;
    const of = (cell) => {
      const [x, y] = [left + (cell % columns) * size + size / 2, Math.floor(cell / columns) * size + size / 4];
      return hex(ctx.getImageData(Math.round(x * dense), Math.round(y * dense), 1, 1).data);
    };
    return {
      set: style.getPropertyValue("--accent"),
      unset: style.getPropertyValue("--unset"),
      cells: Array.from({ length: 48 }, (_, i) => of(i)),
    };
  });

for (const dark of [false, true]) {
  test(`The picture shows the bits that the filter has, ${dark ? "dark" : "light"}`, { dark }, async (page) => {
    await open(page, cities);
    const file = await page.getByRole("link", { name: "Download" }).getAttribute("href");
    const values = async () => {
      const answer = await fetch(url() + file.replace(/file$/, "cells?from=0&count=48"));
      return [...new Uint8Array(await answer.arrayBuffer())];
    };
    const agrees = async (ones) => {
      const cells = await values();
      assert.equal(cells.filter(Boolean).length, ones);
      await eventually(async () => {
        const { set, unset, cells: drawn } = await colors(page);
        assert.deepEqual(
          drawn,
          cells.map((value) => (value ? set : unset)),
        );
      });
    };

    await agrees(7);
    await button(page, "Clear").click();
    await told(page, /empty again/);
    await agrees(0);
  });
}

test("After an insertion, the bits are redrawn", async (page) => {
  await open(page, "/#play?layout=classic&capacity=10000&rate=0.01");
  for (let i = 0; i < 3; ++i) {
    const before = await page.locator("canvas").evaluate((canvas) => canvas.toDataURL());
    await add(page, `key ${i}`);
    await eventually(async () =>
      assert.notEqual(await page.locator("canvas").evaluate((canvas) => canvas.toDataURL()), before),
    );
  }
});

test("Small rates are shown without powers of ten", async (page) => {
  await open(page, "/#play?layout=classic&capacity=100&rate=0.00000086");
  const facts = page.getByRole("region", { name: "Statistics" });
  await eventually(async () => assert.match(await facts.innerText(), /0\.000086%\s+1 in 1\.16 million/));
});

test("A rate near 1 has no reciprocal", async (page) => {
  await open(page, "/#play?layout=classic&capacity=10&bits=16&probes=1");
  const facts = page.getByRole("region", { name: "Statistics" });
  await button(page, "Add random addresses").click();
  await eventually(async () => {
    const said = await facts.innerText();
    assert.match(said, /Exact FPR\s+(9\d(\.\d+)?|100)%/);
    assert.doesNotMatch(said, /1 in 1(\.[0-4]\d*)?\b/);
  });
});

test("Numbers can be typed as the page writes them", async (page) => {
  await open(page, "/#play?layout=classic&capacity=20&rate=0.05");
  await field(page, "Keys (n)").fill("1,234,567");
  await told(page, /New filter: 7,712,314 bits, 4 hashes/); // as `bloomery plan` has it for classic
  await field(page, "Keys (n)").fill("1,23");
  await eventually(async () => assert.equal(await field(page, "Keys (n)").getAttribute("aria-invalid"), "true"));
});

test("An invalid number is reported in Chinese, too", { language: "zh", expects: [/status of 400/] }, async (page) => {
  await page.goto("/#play");
  const hashes = page.getByRole("textbox", { name: "哈希数 k" });
  await hashes.fill("many");
  await page.getByText("请用数字输入不小于 1 的整数。").waitFor();
  await hashes.fill("999");
  await page.getByText(/^该值无效（expected a whole number, 1 to 255, found 999）$/).waitFor();
});

test("The chart has a table of its data", async (page) => {
  await open(page, cities);
  const rows = await eventually(async () => {
    const found = await tableOf(page.locator("figure"));
    assert.deepEqual(found.at(-1)[0], "16");
    return found;
  });
  assert.deepEqual(rows[0], ["keys", "false-positive rate"]);
  assert.deepEqual(rows[1], ["0", "0"]);
});

// ---- links and outages ----

test("A link creates the same bits in another page", async (page, context) => {
  await open(page, "/#play?layout=split_block512&capacity=50&rate=0.02&seed=7");
  for (const one of ["a,b", "100%", "München & Söhne", "#?=+ /"]) await add(page, one);
  await eventually(async () => assert.match(page.url(), /keys=/));
  const first = fs.readFileSync(await download(page, "first.bloom"));
  const other = await context.newPage();

  await open(other, page.url());

  await holds(other, ["a,b", "100%", "München & Söhne", "#?=+ /"]);
  assert.deepEqual(fs.readFileSync(await download(other, "second.bloom")), first);
});

test("The link can be copied", { context: { permissions: ["clipboard-read", "clipboard-write"] } }, async (page) => {
  await open(page, cities);
  await holds(page, ["Madrid", "Barcelona"]);
  await button(page, "Copy link").click();
  await page.getByText("Copied.", { exact: true }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
  assert.match(page.url(), /scheme=pharo&keys=Madrid%2CBarcelona$/);
});

test(
  "A link that cannot be opened leaves the previous filter, whose link is copied",
  {
    context: { permissions: ["clipboard-read", "clipboard-write"] },
  },
  async (page) => {
    await open(page, cities);
    await holds(page, ["Madrid", "Barcelona"]);
    await page.goto("/#play?layout=classic&capacity=1000000000&rate=0.01");
    await page.getByText("The link could not be opened. The page still shows the previous filter.").waitFor();
    await button(page, "Copy link").click();
    await page.getByText("Copied.", { exact: true }).waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(link, /#play\?capacity=10&rate=0\.1&scheme=pharo&keys=Madrid%2CBarcelona$/);

    await add(page, "Paris");

    await eventually(async () => {
      assert.equal(page.url(), `${link}%2CParis`);
      assert.equal(await field(page, "Keys (n)").inputValue(), "10");
      assert.equal(await page.getByText("The link could not be opened.").count(), 0);
    });
  },
);

test("A link contains no keys after a removal, because full counters are not decremented", async (page) => {
  await open(page, "/#play?layout=counting&capacity=20&rate=0.05&keys=alice,bob");
  await eventually(async () => assert.match(page.url(), /keys=alice%2Cbob/));
  await button(page, "Remove alice").click();
  await told(page, /Removed alice/);
  await eventually(async () => assert.doesNotMatch(page.url(), /keys=/));
});

test("A link opened within the page creates its filter", async (page) => {
  await open(page, cities);
  await holds(page, ["Madrid", "Barcelona"]);
  await page.goto("/#play?layout=classic&capacity=10&bits=100&probes=3&keys=Oslo");
  await holds(page, ["Oslo"]);
  await eventually(async () => assert.match(await setBits(page).innerText(), /^3 of 100/));
});

test("The filter is kept while another view is open", async (page) => {
  await open(page);
  await add(page, "alice");
  await page.getByRole("link", { name: "Learn" }).click();
  await page.getByRole("heading", { name: "What does an empty filter know?" }).waitFor();
  await page.getByRole("link", { name: "Play" }).click();
  await holds(page, ["alice"]);
});

test("A filter that the server deleted can be created again", { expects: [/status of 404/] }, async (page) => {
  await open(page, cities);
  const before = await setBits(page).innerText();
  const file = await page.getByRole("link", { name: "Download" }).getAttribute("href");
  await fetch(url() + file.replace(/\/file$/, ""), { method: "DELETE" });
  await key(page).fill("Paris");
  await button(page, "Create it again").click();
  await told(page, /2 keys carried over/);
  await eventually(async () => assert.ok(await key(page).evaluate((node) => node === document.activeElement)));
  assert.equal(await setBits(page).innerText(), before);
  assert.equal(await key(page).inputValue(), "Paris");
});

test(
  "During an outage the page reports it, keeps the input, and continues afterwards",
  { expects: [/ERR_/] },
  async (page) => {
    await open(page);
    await page.route("**/api/**", (route) => route.abort("connectionrefused"));
    await key(page).fill("alice");
    await key(page).press("Enter");
    await page.getByText("The playground does not answer.").waitFor();
    await eventually(async () => assert.equal(await key(page).inputValue(), "alice"));
    await page.unroute("**/api/**");
    await eventually(async () => assert.equal(await page.getByText("The playground does not answer.").count(), 0));
    await key(page).press("Enter");
    await holds(page, ["alice"]);
  },
);

// ---- accessibility ----

for (const [dark, language] of [
  [false, "en"],
  [true, "zh"],
]) {
  test(`axe reports nothing serious, ${dark ? "dark" : "light"}, ${language}`, { dark, language }, async (page) => {
    await page.goto(cities);
    await page.locator("figure svg").waitFor();
    await page.locator("form input").first().fill("Roma");
    await page.keyboard.press("Shift+Enter");
    await page.locator("li.wrong").waitFor();
    await noSeriousFindings(page);
  });
}

test("The view fits a phone", { width: 360, height: 740 }, async (page) => {
  await open(page, `${cities},${"a-very-long-key-".repeat(20)}`);
  await told(page, /3 keys carried over/);
  await key(page).fill("x".repeat(200));
  await key(page).press("Shift+Enter");
  await told(page, /^\S\s*(No|Maybe)/);
  await noSidewaysScrolling(page);
  await noSeriousFindings(page);
});
