// The picture of the bits: numbers are legible, marks differ by their pattern, and pointing at a cell names the keys
// that set it, beside the cell and within the window. The map of the fill ratio: its shades and legend span its range.
import assert from "node:assert/strict";
import { becomes, eventually, playground, tabTo, words } from "./browser.mjs";
import { answerInspections, inspection } from "./labels_answers.mjs";
import { moduleOf, recordCanvasText, settled } from "./labels_view.mjs";

const { test } = playground();
const t = words("en");
const cities = "/#play?scheme=pharo&capacity=10&rate=0.1&keys=Madrid,Barcelona";
const press = (page, name, values) =>
  page
    .getByRole("button", { name: t(name, values), exact: true })
    .first()
    .click();

// ---- places of labels ----

test("Labels of cells and rows are within their places, for any size and number", async () => {
  const { cellLabels, gutterFor, lettersFor, rowLabels } = await moduleOf("bits/lettering.ts");
  const measure = (text, size, bold) => text.length * size * (bold ? 0.68 : 0.62);
  const numbered = new Set();
  for (const size of [44, 34, 24, 16, 12, 8, 6, 4, 3, 2])
    for (const digits of [1, 2, 3, 4, 5, 6, 7, 8, 10])
      for (const counters of [false, true])
        for (const top of [0, 7, 1000]) {
          const cells = 9 * 10 ** (digits - 1);
          const name = (cell) => (cell + 10 ** (digits - 1)).toLocaleString("en-US");
          const letters = lettersFor(size, name(cells - 1), counters, measure);
          const gutter = letters ? 0 : gutterFor(name(cells - 1), measure);
          const columns = Math.floor((700 - gutter) / size);
          const grid = { unit: 1, size, columns, left: gutter, letters, gutter, counters };
          const rows = Math.ceil(cells / columns);
          const segment = { first: 0, cells, units: cells, rows, top: 0 };
          const [from, to] = [Math.floor(top / size), Math.ceil((top + 500) / size)].map((row) =>
            Math.min(cells, Math.min(rows, row) * columns),
          );
          const seen = { from, to, top, height: 500 };
          const boxes = [
            ...cellLabels(grid, segment, seen, name, measure),
            ...rowLabels(grid, segment, seen, name, measure),
          ].map(({ x, y, width, size: font, cell }) => ({
            ...{ cell, left: x - width / 2, right: x + width / 2, top: y - font / 2, bottom: y + font / 2 },
          }));

          const at = `${size} px, ${digits} digits, ${counters ? "counters" : "bits"}, scrolled by ${top}`;
          if (letters) numbered.add(`${size} ${digits}`);
          if (from < to && rows * size > top + 40) assert(boxes.length > 0, at);
          for (const [i, one] of boxes.entries()) {
            assert(one.left >= 0 && one.top >= 0 && one.bottom <= 500, at);
            const from = letters ? (one.cell % columns) * size : 0;
            const to = letters ? from + size - 2 : gutter;
            assert(one.left > from && one.right < to, `${at}: cell ${one.cell}`);
            const next = boxes[i + 1];
            assert(!next || next.left >= one.right || next.top >= one.bottom, `${at}: ${one.cell} meets ${next?.cell}`);
          }
        }
  assert(numbered.has("24 2") && numbered.has("34 3") && numbered.has("44 4"), `${[...numbered]}`);
  assert(!numbered.has("44 8"), "eight digits do not fit into 44 px");
});

test("A text is shown beside its square and within the window, wherever the square is", async () => {
  const { beside } = await moduleOf("bits/beside.ts");
  for (const [width, height] of [
    [360, 640],
    [640, 360],
    [1440, 900],
  ])
    for (const size of [2, 24, 44])
      for (const text of [
        { width: 90, height: 32 },
        { width: 260, height: 150 },
      ])
        for (let left = 0; left + size <= width; left += 59)
          for (let top = 0; top + size <= height; top += 43) {
            const at = beside({ left, top, right: left + size, bottom: top + size }, text, { width, height });
            const message = JSON.stringify({ width, height, size, text, left, top, at });
            assert(at.left >= 0 && at.left + text.width <= width, message);
            assert(at.top >= 0 && at.top + text.height <= height, message);
            const apart =
              at.left >= left + size ||
              at.left + text.width <= left ||
              at.top >= top + size ||
              at.top + text.height <= top;
            assert(apart, message);
          }
});

// ---- legible numbers ----

/** The lowest contrast of any text on a canvas with any pixel behind it, and the texts that are covered. */
const worstContrast = (page) =>
  page.evaluate(() => {
    const channel = (c) => (c <= 10 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    let worst = { contrast: 21, text: "", texts: 0, covered: [] };
    for (const canvas of document.querySelectorAll("main canvas")) {
      for (const { text, fill, box, behind, drawn } of canvas.texts ?? []) {
        const ink = luminance([1, 3, 5].map((i) => parseInt(fill.slice(i, i + 2), 16)));
        for (let i = 0; i < behind.length; i += 4) {
          const back = luminance(behind.slice(i, i + 3));
          const contrast = (Math.max(ink, back) + 0.05) / (Math.min(ink, back) + 0.05);
          if (contrast < worst.contrast) worst = { ...worst, contrast, text };
        }
        ++worst.texts;
        const now = canvas.getContext("2d").getImageData(...box).data;
        if (now.some((channel, i) => channel !== drawn[i])) worst.covered.push(text);
      }
    }
    return worst;
  });

async function isLegible(page, where) {
  await settled(page, 300);
  const { contrast, text, texts, covered } = await worstContrast(page);
  assert(texts > 0, where);
  assert.deepEqual(covered, [], where);
  assert(contrast >= 4.5, `${where}: ${text} has a contrast of ${contrast.toFixed(2)}`);
}

for (const dark of [false, true]) {
  test(`Numbers are legible in marked cells, ${dark ? "dark" : "light"}`, { dark, limit: 60 }, async (page) => {
    await recordCanvasText(page);
    await page.addInitScript(() => (globalThis.keepsPixels = true));
    const hashed = () => page.getByRole("button", { name: t("learn.hash.next") }).and(page.locator(":disabled"));
    await page.goto("/#learn/2");
    for (const key of ["Madrid", "Barcelona"]) {
      await press(page, "learn.add", { key });
      await hashed().waitFor();
      await isLegible(page, `chapter 2, ${key}`);
    }
    await page.goto("/#learn/3");
    await press(page, "learn.ask", { key: "Berlin" });
    await hashed().waitFor();
    await isLegible(page, "chapter 3");
    await page.goto("/#learn/5");
    await press(page, "learn.5.force");
    await press(page, "learn.5.take");
    await isLegible(page, "chapter 5");

    await page.goto("/#play?capacity=60&rate=0.01&layout=classic");
    await page.locator("canvas[data-size]").waitFor();
    await press(page, "play.addresses");
    await page.getByText(/^[1-9]\d* of \d+ bits are set/).waitFor();
    for (const key of ["x8", "Madrid"]) {
      await page.getByLabel(t("key.label"), { exact: true }).fill(key); // a key that is being typed
      await isLegible(page, `Play, typed ${key}`);
      await page.keyboard.press("Enter");
      await isLegible(page, `Play, added ${key}`);
    }
    await page.goto("/#play?window_milliseconds=7000&capacity=70&rate=0.01"); // a shade for each age
    await page.getByText(t("bits.newest")).or(page.locator("canvas[data-size]")).first().waitFor();
    for (let age = 0; age < 7; ++age) {
      await press(page, "play.addresses");
      await page.getByRole("button", { name: t("play.tick", { seconds: 1 }), exact: true }).click();
      await isLegible(page, `Play, window after ${age + 1} seconds`);
    }
  });

  test(
    `New cells and cells that were set before differ by pattern, ${dark ? "dark" : "light"}`,
    { dark },
    async (page) => {
      await page.goto("/#learn/2");
      await press(page, "learn.add", { key: "Madrid" });
      await press(page, "learn.add", { key: "Barcelona" });
      const roleOf = { 48: "shared", 30: "new", 36: "new", 42: "new" }; // Madrid has set bit 48
      await becomes(() => page.locator(".bits .hidden li").count(), 4);
      for (const [bit, role] of Object.entries(roleOf))
        await page.getByText(t("bits.item", { bit, role: t(`bits.role.${role}`) })).waitFor({ state: "attached" });
      await settled(page, 300);
      /** How often the color changes along the lower edge of a cell. */
      const changes = (bit) =>
        page.locator("canvas").evaluate((canvas, cell) => {
          const [size, columns, left] = ["size", "columns", "left"].map((name) => Number(canvas.dataset[name]));
          const dense = canvas.width / canvas.getBoundingClientRect().width;
          const [x, y] = [left + (cell % columns) * size + 1, (Math.floor(cell / columns) + 1) * size - 4];
          const { data } = canvas.getContext("2d").getImageData(x * dense, y * dense, (size - 4) * dense, 1);
          const pixels = Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)]);
          const far = (a, b) => a.some((c, i) => Math.abs(c - b[i]) > 60);
          return pixels.filter((one, i) => i > 0 && far(one, pixels[i - 1])).length;
        }, bit - 1);

      for (const [bit, role] of Object.entries(roleOf)) {
        const n = await changes(Number(bit));
        assert(role === "new" ? n === 0 : n >= 6, `bit ${bit}, ${role}: ${n} changes of color`);
      }
    },
  );
}

// ---- the keys that set a cell ----

/** Where a cell of a picture that is not scrolled is in the window. */
const placeOf = (page, cell) =>
  page
    .locator("canvas")
    .first()
    .evaluate((canvas, cell) => {
      const [size, columns, left] = ["size", "columns", "left"].map((name) => Number(canvas.dataset[name]));
      const at = canvas.getBoundingClientRect();
      return { x: at.left + left + (cell % columns) * size, y: at.top + Math.floor(cell / columns) * size, size };
    }, cell);

const box = (page) => page.locator(".picture .box");

async function isBeside(page, { x, y, size }, where) {
  const at = await box(page).boundingBox();
  const window = page.viewportSize();
  const message = `${where}: ${JSON.stringify({ at, cell: { x, y, size }, window })}`;
  assert(at.x >= 0 && at.y >= 0 && at.x + at.width <= window.width && at.y + at.height <= window.height, message);
  assert(
    at.x >= x + size - 0.5 || at.x + at.width <= x + 0.5 || at.y >= y + size - 0.5 || at.y + at.height <= y + 0.5,
    message,
  );
}

const pointers = {
  mouse: (page, { x, y, size }) => page.mouse.move(x + size / 2, y + size / 2),
  touch: (page, { x, y, size }) => page.touchscreen.tap(x + size / 2, y + size / 2),
};
for (const [kind, point] of Object.entries(pointers)) {
  for (const [width, height] of [
    [360, 640],
    [1440, 900],
  ]) {
    const options = { width, height, limit: 60, context: { hasTouch: kind === "touch" } };
    test(`The ${kind} shows which keys set a bit, beside it, at ${width} px`, options, async (page) => {
      const says = async (cell, text, where) => {
        const place = await placeOf(page, cell);
        await point(page, place);
        await becomes(box(page), text);
        await settled(page, 50);
        await isBeside(page, place, where);
      };
      const canvas = page.locator("canvas").first();
      const shows = (block) => canvas.evaluate((node, block) => node.scrollIntoView({ block }), block);

      await page.goto("/#learn/4"); // bit 36 was set by Barcelona, bit 48 by both
      await canvas.waitFor();
      for (const block of ["start", "end", "center"]) {
        await shows(block);
        await says(35, "Bit 36 was set by Barcelona.", `chapter 4, ${block}`);
        await says(47, "Bit 48 was set by Madrid, Barcelona.", `chapter 4, ${block}`);
        await says(0, "Bit 1 is not set.", `chapter 4, ${block}`);
      }
      await page.goto("/#play?layout=classic&capacity=1000&rate=0.01&keys=Madrid");
      await page.getByText(/^7 of [\d,]+ bits are set/).waitFor();
      await page.getByLabel(t("key.label"), { exact: true }).fill("Madrid");
      const item = page.locator(".bits .hidden li").first();
      const bit = Number(/\d+/.exec((await item.textContent()).replace(",", ""))[0]);
      await shows("center");
      await says(bit, `Bit ${bit.toLocaleString("en-US")} was set by Madrid.`, "Play, 1,000 keys");

      await page.goto("/#play?capacity=1000000&rate=0.01"); // squares of many bits
      await page.getByText(/Each square stands for/).waitFor();
      await shows("start");
      await says(0, /^Bits 0 to [\d,]+: 0 of [\d,]+ set\. Click/, "Play, 10^6 keys");
      const before = await page.getByText(/Each square stands for/).textContent();
      if (kind === "mouse") await page.mouse.down().then(() => page.mouse.up());
      else await point(page, await placeOf(page, 0));
      await eventually(async () =>
        assert.notEqual(await page.locator(".bits .tools .quiet").textContent({ timeout: 500 }), before),
      );
    });
  }
}

test("The keyboard's cursor shows which keys set a bit, in Learn and in Play", async (page) => {
  for (const [where, names] of [
    ["/#learn/4", t("bits.cursor")],
    [cities, t("bits.cursor")],
  ]) {
    await page.goto(where);
    const cursor = page.getByRole("slider", { name: names });
    await page.locator("canvas[data-size]").waitFor();
    await tabTo(page, cursor);
    await page.keyboard.press("End");
    await becomes(box(page), "Bit 48 was set by Madrid, Barcelona.");
    await isBeside(page, await placeOf(page, 47), where);
    for (let i = 0; i < 12; ++i) await page.keyboard.press("ArrowLeft");
    await becomes(box(page), "Bit 36 was set by Barcelona.");
    assert.equal(await cursor.getAttribute("aria-valuetext"), "Bit 36 was set by Barcelona.");
    await page.keyboard.press("Escape");
    await box(page).waitFor({ state: "detached" });
  }
});

test("A text does not appear after the mouse has left", async (page) => {
  await page.goto("/#learn/4");
  await page.locator("canvas[data-size]").waitFor();
  for (const rest of [100, 120, 125, 130]) {
    await pointers.mouse(page, await placeOf(page, 35));
    await page.waitForTimeout(rest); // the text appears after 120 ms, when the keys are known
    await page.mouse.move(2, 2);
    await page.waitForTimeout(400);
    assert.equal(await box(page).count(), 0, `after ${rest} ms`);
  }
});

// ---- the map of the fill ratio ----

test("The map's shades span the fill ratios that are present, and its legend gives them", async (page) => {
  const seen = inspection(1e9);
  await answerInspections(page, seen);
  await page.goto("/#inspect/0");
  const map = page.getByRole("region", { name: t("inspect.heat"), exact: true });
  await map.locator("canvas").waitFor();
  const { ones, cells_of_range: width } = seen.heat;
  const rates = ones.map((n, i) => n / Math.min(width, seen.filter.cells - i * width));
  const [least, most] = [Math.min(...rates), Math.max(...rates)];

  const ends = (await map.locator(".scale span").allInnerTexts()).map((text) => parseFloat(text) / 100);
  assert.equal(ends.length, 2);
  const off = 0.1 * (most - least);
  assert(Math.abs(ends[0] - least) < off && Math.abs(ends[1] - most) < off, `${ends}, expected ${least} to ${most}`);

  const colors = await map.locator("canvas").evaluate(
    (canvas, places) => {
      const { width, height } = canvas.getBoundingClientRect();
      const size = [3, 4, 5, 6, 7, 8, 9, 10].find(
        (one) => Math.ceil(places.all / Math.floor(width / one)) * one === height,
      );
      const columns = width / size;
      const ctx = canvas.getContext("2d");
      return [places.least, places.most].map((i) => {
        const [x, y] = [(i % columns) * size + 1, Math.floor(i / columns) * size + 1];
        const rgb = [...ctx.getImageData(x, y, 1, 1).data.slice(0, 3)];
        return `#${rgb.map((c) => c.toString(16).padStart(2, "0")).join("")}`;
      });
    },
    { all: ones.length, least: rates.indexOf(least), most: rates.indexOf(most) },
  );
  const wanted = await page.evaluate(() =>
    ["--unset", "--accent"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name)),
  );
  assert.deepEqual(colors, wanted);
});
