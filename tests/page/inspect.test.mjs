// The Inspect view, compared with the command's output for the same filters, also while files change, disappear and
// return.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import {
  eventually,
  noSeriousFindings,
  noSidewaysScrolling,
  numberOf,
  playground,
  tableOf,
  tabTo,
  valuesOf,
  words,
} from "./browser.mjs";

// ---- the filters ----

const lines = (from, to) => Array.from({ length: to - from }, (_, i) => `key ${from + i}\n`).join("");
const names = ["full", "small", "growing", "leaving", "half", "sealed", "window"].map((one) => `${one}.bloom`);

/** Sets the first half of the bits, which begin at byte 4096, as no keys would. */
function fillFirstHalf(file) {
  const opened = fs.openSync(file, "r+");
  fs.writeSync(opened, Buffer.alloc(12_000, 0xff), 0, 12_000, 4096);
  fs.closeSync(opened);
}

const { test, command, folder } = playground({
  filters: async (folder) => {
    fs.writeFileSync(path.join(folder, "keys"), lines(0, 5000));
    fs.writeFileSync(path.join(folder, "few"), lines(0, 300));
    await command("build", "-q", "-o", "full.bloom", "--layout", "blocked", "-n", "5000", "-p", "2%", "keys");
    await command("build", "-q", "-o", "small.bloom", "--layout", "blocked", "-n", "500", "few");
    await command("build", "-q", "-o", "growing.bloom", "-n", "5000", "few");
    await command("build", "-q", "-o", "leaving.bloom", "-n", "5000", "few");
    await command("build", "-q", "-o", "half.bloom", "--layout", "classic", "-n", "20000", "few");
    fillFirstHalf(path.join(folder, "half.bloom"));
    await command("seal", "-q", "-o", "sealed.bloom", "few");
    // Too small on purpose; exit status 3.
    await assert.rejects(command("build", "-q", "-o", "window.bloom", "--window", "1h", "-n", "100", "few"), {
      code: 3,
    });
    return names.map((one) => path.join(folder, one));
  },
});
const nothing = playground();

const [full, small, growing, leaving, half, sealed, forgetful] = names.keys();
const t = words("en");

/** One of the three FPRs in large type. */
const rate = (page, name) =>
  eventually(async () => numberOf(await page.locator(`[data-rate=${name}]`).innerText({ timeout: 1000 })));

/** The value of a row in "Parameters". */
const fact = (page, name) =>
  page
    .getByRole("region", { name: t("inspect.parameters") })
    .locator("dl > div", { has: page.getByText(t(name), { exact: true }) })
    .locator("dd");

const rounded = (n) => Number(n.toPrecision(3));

const nameOf = (i) => path.join(folder, names[i]);

// ---- the tests ----

test("The three rates match the command's", async (page) => {
  await page.goto(`/#inspect/${full}`);
  const shown = {};
  for (const name of ["promised", "certified", "measured"]) shown[name] = await rate(page, name);

  const info = JSON.parse(await command("info", "--json", "--queries", "100000", "full.bloom"));

  assert.equal(shown.promised, rounded(info.target_rate));
  assert.equal(shown.certified, rounded(info.rate_now));
  const told = await page.getByText("95% confidence").innerText();
  const { low, high } = valuesOf(t("inspect.measured.what"), told);
  assert(numberOf(low) <= shown.measured && shown.measured <= numberOf(high), told);
  assert(numberOf(low) < 1.1 * info.rate_now && info.rate_now < 1.1 * numberOf(high), `${told}: ${info.rate_now}`);
  assert.match(await page.locator("dl").first().innerText(), /1 in 50/);
});

test("The squares of the map add up to the number of set bits", async (page) => {
  await page.goto(`/#inspect/${small}`);
  const map = page.getByRole("slider");
  await tabTo(page, map);
  await page.keyboard.press("Home");
  const squares = 1 + Number(await map.getAttribute("aria-valuemax"));
  let sum = 0;
  for (let i = 0; i < squares; ++i) {
    await eventually(async () => assert.equal(await map.getAttribute("aria-valuenow"), String(i)));
    const said = valuesOf(t("inspect.heat.part"), await map.getAttribute("aria-valuetext"));
    sum += numberOf(said.ones);
    await page.keyboard.press("ArrowRight");
  }

  const { fill, bits } = JSON.parse(await command("info", "--json", "small.bloom"));

  assert(squares > 3);
  assert.equal(sum, Math.round(fill * bits));
  const { ones } = valuesOf(t("inspect.is.fill.of"), await fact(page, "inspect.is.fill").innerText());
  assert.equal(numberOf(ones), sum);
});

test("Squares have the shade of their fill ratio, and the pointer selects the square below it", async (page) => {
  await page.goto(`/#inspect/${half}`);
  await rate(page, "certified");
  const { heat, filter } = await (await page.request.get(`/api/1/inspections/${half}`)).json();
  const share = heat.ones.map((n, i) => n / Math.min(heat.cells_of_range, filter.cells - i * heat.cells_of_range));
  const map = page.getByRole("slider");
  const canvas = map.locator("canvas");
  await eventually(async () => assert((await canvas.boundingBox()).height > 20));
  await map.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await canvas.boundingBox();
  const seen = new Map(); // by square

  for (const down of [0.05, 0.35, 0.65]) {
    for (const along of [0.03, 0.27, 0.52, 0.81]) {
      await page.mouse.move(x + along * width, y + down * height);
      const square = Number(await map.getAttribute("aria-valuenow"));
      await page.mouse.move(x + along * width, y - 5);
      await map.focus();
      await page.keyboard.press("End"); // moves the frame away
      await eventually(async () => assert.equal(await map.getAttribute("aria-valuenow"), String(share.length - 1)));
      const painted = await canvas.evaluate(
        (node, [a, b]) => [...node.getContext("2d").getImageData(a * node.width, b * node.height, 1, 1).data],
        [along, down],
      );
      seen.set(square, painted.slice(0, 3));
    }
  }

  const [unset, accent] = await page.evaluate(() =>
    ["--unset", "--accent"].map((name) => {
      const ctx = document.createElement("canvas").getContext("2d");
      ctx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
      ctx.fillRect(0, 0, 1, 1);
      return [...ctx.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }),
  );
  assert([...seen.keys()].some((i) => share[i] > 0.99) && [...seen.keys()].some((i) => share[i] < 0.2));
  for (const [i, painted] of seen) {
    const wanted = unset.map((from, c) => from + share[i] * (accent[c] - from));
    const off = Math.max(...wanted.map((one, c) => Math.abs(one - painted[c])));
    assert(off < 4, `square ${i}, ${share[i]} full, is painted ${painted}, not ${wanted}`);
  }
});

test("A partial reading is mentioned, and unread parts do not count as the emptiest square", async (page) => {
  let part = 0;
  await page.route("**/inspections/*?*", async (route) => {
    const answer = await route.fetch().catch(() => null); // the page may be closed already
    if (!answer) return;
    const seen = await answer.json();
    const { heat, filter } = seen;
    if (heat) {
      heat.read = heat.ones.map((n) => 1.25 * n);
      heat.read[1] = heat.ones[1] = 0;
      part = heat.read.reduce((a, b) => a + b) / filter.cells;
    }
    await route.fulfill({ response: answer, json: seen });
  });

  await page.goto(`/#inspect/${full}`);
  await rate(page, "certified");

  const map = page.getByRole("slider");
  const { least, most } = valuesOf(t("inspect.heat.ends"), await map.getAttribute("aria-valuetext"));
  assert.deepEqual([numberOf(least), numberOf(most)], [0.8, 0.8]);
  const sample = page.getByText(t("inspect.heat.sample").split("{share}")[1]);
  const { share } = valuesOf(t("inspect.heat.sample"), await sample.innerText());
  assert(Math.abs(numberOf(share) - part) < 0.01, `${share}: ${part}`);
});

test("The charts' tables match the API", async (page) => {
  await page.goto(`/#inspect/${full}`);
  await rate(page, "certified");
  const said = await (await page.request.get(`/api/1/inspections/${full}`)).json();

  const blocks = await tableOf(page.getByRole("region", { name: t("inspect.blocks"), exact: true }));
  const forecast = await tableOf(page.getByRole("region", { name: t("inspect.forecast"), exact: true }));

  const counted = blocks.slice(1).reduce((sum, [, found]) => sum + numberOf(found), 0);
  assert.equal(counted, Math.floor(said.filter.cells / said.histogram.block_cells));
  assert.deepEqual(
    forecast.slice(2).map(([, keys]) => Number(keys)),
    said.forecast.map((one) => one.keys),
  );
  await page.getByText(t("inspect.blocks.said.fits")).waitFor();
});

test("Axes of counts show each integer once", async (page) => {
  await page.goto(`/#inspect/${forgetful}`);
  const place = page.getByRole("region", {
    name: t("inspect.blocks"),
    exact: true,
  });
  await place.locator("svg text").first().waitFor();

  const axes = await place
    .locator("svg g:has(> text)")
    .evaluateAll((all) => all.map((one) => [...one.querySelectorAll("text")].map((text) => text.textContent)));

  const numbers = axes.filter((texts) => texts.every((text) => /^[\d,]+$/.test(text)));
  assert.equal(numbers.length, 2);
  for (const ticks of numbers) assert.deepEqual(ticks, [...new Set(ticks)]);
});

test("The forecast begins with the exact FPR and does not contradict the verdict", async (page) => {
  await page.route(`**/api/1/inspections/${full}*`, async (route) => {
    if (!route.request().url().endsWith("after=0")) return route.continue();
    const said = await (await route.fetch()).json();
    const verdict = { level: "bad", code: "broken", text: "" };
    await route.fulfill({
      json: {
        ...said,
        verdict,
        certified: 1.16 * said.promised,
        predicted: said.promised,
      },
    });
  });
  await page.goto(`/#inspect/${full}`);

  const place = page.getByRole("region", {
    name: t("inspect.forecast"),
    exact: true,
  });
  valuesOf(t("inspect.forecast.broken"), await place.locator("figcaption").innerText());
  assert.equal((await tableOf(place))[1][2], "0.0232");
});

test("Static filters and windows omit facts that do not apply to them", async (page) => {
  await page.goto(`/#inspect/${sealed}`);
  assert.equal(await fact(page, "inspect.is.in").innerText(), "300");
  for (const name of ["inspect.is.left", "inspect.is.fill"]) assert.equal(await fact(page, name).count(), 0);

  await page.goto(`/#inspect/${forgetful}`);
  await page.getByText(t("inspect.verdict.overfull")).waitFor();
  await page.getByText(t("inspect.forecast.window.over")).waitFor();
  assert.equal(await fact(page, "inspect.is.left").count(), 0);
});

// ---- another program at the same address ----

/**
 * Until startAnew() is called, the page's program answers; afterwards another one, which has some of its filters, in
 * this order. Pending requests to the first program are disconnected, as when a program exits.
 */
async function twoPrograms(page, given, { tells = true } = {}) {
  const session = (name) => (tells ? { session: name } : {});
  let startAnew;
  const ended = new Promise((resolve) => (startAnew = resolve));
  let another = false;
  void ended.then(() => (another = true));

  const answer = async (route) => {
    const url = new URL(route.request().url());
    if (!another) {
      if (Number(url.searchParams.get("after")) > 0) return ended.then(() => route.abort());
      const said = await (await route.fetch()).json();
      return route.fulfill({ json: { ...said, ...session("first") } });
    }
    if (url.pathname.endsWith("about")) {
      const said = await (await route.fetch()).json();
      const inspections = given.map((i, number) => ({
        ...said.inspections[i],
        number,
      }));
      return route.fulfill({
        json: { ...said, ...session("another"), inspections },
      });
    }
    const number = Number(url.pathname.split("/")[4]);
    if (number >= given.length) {
      return route.fulfill({
        status: 404,
        json: {
          error: { code: "not_found", what: "no such filter", where: "" },
        },
      });
    }
    url.pathname = `/api/1/inspections/${given[number]}`;
    const said = await (await route.fetch({ url: String(url) })).json();
    return route.fulfill({ json: { ...said, ...session("another"), number } });
  };
  // Ignore requests that are pending when the test ends.
  await page.route(/\/api\/1\/(about|inspections)/, (route) => answer(route).catch(() => {}));
  return startAnew;
}

for (const tells of [true, false]) {
  const how = tells ? "by the program's session" : "by the filter's name";
  test(
    `Numbers never appear under another filter's name: detected ${how}`,
    { expects: [/net::ERR/, /404/] },
    async (page) => {
      const startAnew = await twoPrograms(page, [small, growing], { tells });
      await page.goto(`/#inspect/${full}`);
      const before = await rate(page, "certified");
      startAnew();

      const alert = page.getByRole("alert").getByText(t("inspect.gone", { name: nameOf(full) }));
      await alert.waitFor();
      assert.equal(await page.locator("[data-rate]").count(), 0);
      await page.getByRole("link", { name: nameOf(small), exact: true }).click();

      await page.getByRole("heading", { level: 1, name: nameOf(small) }).waitFor();
      assert.notEqual(await rate(page, "certified"), before);
    },
  );
}

test("A filter is found under its number in another program", { expects: [/net::ERR/] }, async (page) => {
  const startAnew = await twoPrograms(page, [small, full]);
  await page.goto(`/#inspect/${full}`);
  const before = await rate(page, "certified");
  startAnew();

  await eventually(async () => assert.equal(new URL(page.url()).hash, "#inspect/1"));
  await page.getByRole("heading", { level: 1, name: nameOf(full) }).waitFor();
  assert.equal(await rate(page, "certified"), before);
});

test("A program without the filter is not reported as silent", { expects: [/net::ERR/, /404/] }, async (page) => {
  const startAnew = await twoPrograms(page, []);
  await page.goto(`/#inspect/${small}`);
  await rate(page, "certified");
  startAnew();

  await page
    .getByRole("alert")
    .getByText(t("inspect.gone", { name: nameOf(small) }))
    .waitFor();
  assert.equal(await page.getByText(t("inspect.lost")).count(), 0);
});

test("Keys added by another process appear without a reload", async (page) => {
  await page.goto(`/#inspect/${growing}`);
  const keys = async () => numberOf((await fact(page, "inspect.is.in").innerText()).split("(")[0]);
  await eventually(async () => assert(Math.abs((await keys()) - 300) < 5));
  const before = await rate(page, "certified");
  fs.writeFileSync(path.join(folder, "more"), lines(300, 4000));

  await command("add", "-q", "growing.bloom", "more");

  await eventually(async () => assert(Math.abs((await keys()) - 4000) < 20));
  assert((await rate(page, "certified")) > before);
  assert.match(await page.locator(".live").innerText(), /Live/);
});

test("A file that is gone or replaced is reported", async (page) => {
  const file = path.join(folder, names[leaving]);
  await page.goto(`/#inspect/${leaving}`);
  const certified = await rate(page, "certified");

  fs.renameSync(file, `${file}.away`);
  await page.getByRole("alert").getByText(t("inspect.trouble.not_found.file")).waitFor();
  assert.equal(await rate(page, "certified"), certified);
  fs.writeFileSync(`${file}.other`, "this is no filter\n".repeat(500));
  fs.renameSync(`${file}.other`, file);
  await page.getByRole("alert").getByText(t("inspect.trouble.not_a_filter")).waitFor();
  await noSeriousFindings(page);
  fs.renameSync(`${file}.away`, file);
  await page.locator(".live").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
});

test("A lookup shows the key's bits", async (page) => {
  await page.goto(`/#inspect/${full}`);
  const ask = page.getByRole("region", { name: t("inspect.ask.title") });
  await ask.getByRole("textbox").fill("key 17");
  await page.keyboard.press("Enter");

  await ask.getByText(t("inspect.ask.maybe"), { exact: true }).waitFor();
  const explained = JSON.parse(await command("explain", "--json", "full.bloom", "key 17")).keys[0];
  const bits = explained.bits.map(({ bit }) => bit);
  assert(new Set(bits).size < bits.length, "two probes of this key select the same bit");
  assert.equal(await ask.locator("li.set").count(), new Set(bits).size);
  await ask.getByRole("textbox").fill("<b>never added</b>");
  await page.keyboard.press("Enter");
  await ask.getByText("<b>never added</b>").first().waitFor();
});

for (const [name, options] of [
  ["in English", {}],
  ["in the dark, on a phone, in Chinese", { width: 360, dark: true, language: "zh" }],
  ["on a phone, in English", { width: 360 }],
]) {
  test(`The view fits and is accessible ${name}`, options, async (page) => {
    await page.goto(`/#inspect/${full}`);
    await rate(page, "certified");
    await eventually(async () => assert.equal(await page.locator(".plot svg").count(), 2));
    await noSidewaysScrolling(page);
    await noSeriousFindings(page);
  });
}

test("Another filter can be chosen by keyboard and has its own link", async (page) => {
  await page.goto("/#inspect");
  await page.getByRole("heading", { level: 1, name: names[full] }).waitFor();
  const choice = page.getByRole("combobox");
  await tabTo(page, choice);
  await choice.selectOption(String(small));
  await page.getByRole("heading", { level: 1, name: names[small] }).waitFor();
  assert.equal(new URL(page.url()).hash, `#inspect/${small}`);
});

nothing.test("Without a filter, the page shows how to name one", async (page) => {
  await page.goto("/#inspect");
  await page.getByText("bloomery playground seen.bloom", { exact: true }).waitFor();
  await noSeriousFindings(page);
});
