// The Inspect view, compared with the command's output for the same filters, also while files change, disappear and
// return.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import {
  becomes,
  eventually,
  focused,
  follow,
  noSeriousFindings,
  noSidewaysScrolling,
  numberOf,
  playground,
  tableOf,
  tabTo,
  valuesOf,
} from "./browser.mjs";
import { InspectView, keyLines, rounded, t } from "./inspect_view.mjs";

// ---- the filters ----

const names = ["full", "small", "growing", "leaving", "half", "sealed", "window", "later", "pace"].map(
  (one) => `${one}.bloom`,
);

/** Sets the first half of the bits, which begin at byte 4096, as no keys would. */
function fillFirstHalf(file) {
  const opened = fs.openSync(file, "r+");
  fs.writeSync(opened, Buffer.alloc(12_000, 0xff), 0, 12_000, 4096);
  fs.closeSync(opened);
}

const { test, command, folder } = playground({
  filters: async (folder) => {
    fs.writeFileSync(path.join(folder, "keys"), keyLines(0, 5000));
    fs.writeFileSync(path.join(folder, "few"), keyLines(0, 300));
    await command("build", "-q", "-o", "full.bloom", "--layout", "blocked", "-n", "5000", "-p", "2%", "keys");
    await command("build", "-q", "-o", "small.bloom", "--layout", "blocked", "-n", "500", "few");
    await command("build", "-q", "-o", "growing.bloom", "-n", "5000", "few");
    await command("build", "-q", "-o", "pace.bloom", "-n", "3000", "few");
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

const [full, small, growing, leaving, half, sealed, forgetful, later, pace] = names.keys();
const nameOf = (i) => path.join(folder, names[i]);
const infoOf = async (file, ...options) => JSON.parse(await command("info", "--json", ...options, file));

// ---- the numbers ----

test("The rates, bits and lookups of a filter match the command's, and its tables the API's", async (page) => {
  const view = new InspectView(page);
  await view.open(full);
  const shown = {};
  for (const name of ["promised", "certified", "measured"]) shown[name] = await view.rate(name);
  const info = await infoOf("full.bloom", "--queries", "100000");
  assert.equal(shown.promised, rounded(info.target_rate));
  assert.equal(shown.certified, rounded(info.rate_now));
  const told = await page.getByText("95% confidence").innerText();
  const { low, high } = valuesOf(t("inspect.measured.what"), told);
  assert(numberOf(low) <= shown.measured && shown.measured <= numberOf(high), told);
  assert(numberOf(low) < 1.1 * info.rate_now && info.rate_now < 1.1 * numberOf(high), `${told}: ${info.rate_now}`);
  assert.match(await page.locator("dl").first().innerText(), /1 in 50/);

  const said = await (await page.request.get(`/api/1/inspections/${full}`)).json();
  assert.equal(await view.blocks(), Math.floor(said.filter.cells / said.histogram.block_cells));
  assert.deepEqual(
    (await view.table("inspect.forecast")).slice(2).map(([, keys]) => Number(keys)),
    said.forecast.map((one) => one.keys),
  );
  await view.shows("inspect.blocks.said.fits");

  const ask = view.region("inspect.ask.title");
  await ask.getByRole("textbox").fill("key 17");
  await page.keyboard.press("Enter");
  await ask.getByText(t("inspect.ask.maybe"), { exact: true }).waitFor();
  const explained = JSON.parse(await command("explain", "--json", "full.bloom", "key 17")).keys[0];
  const bits = explained.bits.map(({ bit }) => bit);
  assert(new Set(bits).size < bits.length, "two probes of this key select the same bit");
  assert.equal(await ask.locator("li.set").count(), new Set(bits).size);
  await page.keyboard.type("<b>never added</b>"); // replaces the selected text
  await ask.getByRole("button").click();
  await focused(ask.getByRole("textbox"));
  await ask.getByText("<b>never added</b>").first().waitFor();
});

test("The squares of the map add up to the number of set bits", async (page) => {
  const view = new InspectView(page);
  const { map } = view;
  await view.open(small);
  await tabTo(page, map);
  await page.keyboard.press("Home");
  const squares = 1 + Number(await map.getAttribute("aria-valuemax"));
  let sum = 0;
  for (let i = 0; i < squares; ++i) {
    await becomes(() => map.getAttribute("aria-valuenow"), String(i));
    const said = valuesOf(t("inspect.heat.part"), await map.getAttribute("aria-valuetext"));
    sum += numberOf(said.ones);
    await page.keyboard.press("ArrowRight");
  }

  const { fill, bits } = await infoOf("small.bloom");

  assert(squares > 3);
  assert.equal(sum, Math.round(fill * bits));
  const { ones } = valuesOf(t("inspect.is.fill.of"), await view.fact("inspect.is.fill").innerText());
  assert.equal(numberOf(ones), sum);
});

test("Squares have the shade of their fill ratio, and the pointer selects the square below it", async (page) => {
  const view = new InspectView(page);
  const { map } = view;
  await view.open(half);
  await view.rate("certified");
  const { heat, filter } = await (await page.request.get(`/api/1/inspections/${half}`)).json();
  const share = heat.ones.map((n, i) => n / Math.min(heat.cells_of_range, filter.cells - i * heat.cells_of_range));
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
      await becomes(() => map.getAttribute("aria-valuenow"), String(share.length - 1));
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
  const [least, most] = [Math.min(...share), Math.max(...share)];
  for (const [i, painted] of seen) {
    const shade = (share[i] - least) / (most - least);
    const wanted = unset.map((from, c) => from + shade * (accent[c] - from));
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

  const view = new InspectView(page);
  await view.open(full);
  await view.rate("certified");

  const { least, most } = valuesOf(t("inspect.heat.ends"), await view.map.getAttribute("aria-valuetext"));
  assert.deepEqual([numberOf(least), numberOf(most)], [0.8, 0.8]);
  const sample = page.getByText(t("inspect.heat.sample").split("{share}")[1]);
  const { share } = valuesOf(t("inspect.heat.sample"), await sample.innerText());
  assert(Math.abs(numberOf(share) - part) < 0.01, `${share}: ${part}`);
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
  const view = new InspectView(page);
  await view.open(full);

  valuesOf(t("inspect.forecast.broken"), await view.region("inspect.forecast").locator("figcaption").innerText());
  assert.equal((await view.table("inspect.forecast"))[1][2], "0.0232");
});

test("Static filters and windows omit facts that do not apply, and axes show each integer once", async (page) => {
  const view = new InspectView(page);
  await view.open(sealed);
  await becomes(view.fact("inspect.is.in"), "300");
  for (const name of ["inspect.is.left", "inspect.is.fill"]) assert.equal(await view.fact(name).count(), 0);

  await view.open(forgetful);
  await view.shows("inspect.verdict.overfull");
  await view.shows("inspect.forecast.window.over");
  assert.equal(await view.fact("inspect.is.left").count(), 0);
  const chart = view.region("inspect.blocks");
  await chart.locator("svg text").first().waitFor();
  const axes = await chart
    .locator("svg g:has(> text)")
    .evaluateAll((all) => all.map((one) => [...one.querySelectorAll("text")].map((text) => text.textContent)));
  const numbers = axes.filter((texts) => texts.every((text) => /^[\d,]+$/.test(text)));
  assert.equal(numbers.length, 2);
  for (const ticks of numbers) assert.deepEqual(ticks, [...new Set(ticks)]);
});

// ---- the last hour ----

/** Seconds of a duration as the page writes it: "1.5 minutes". */
function secondsOf(text) {
  const [, n, unit] = /^([\d.,]+) (second|minute|hour)s?$/.exec(text) ?? assert.fail(text);
  return Number(n) * { second: 1, minute: 60, hour: 3600 }[unit];
}

test("A filter that grows shows its pace and when it is full, also after a reload", { limit: 90 }, async (page) => {
  const view = new InspectView(page);
  const headline = page.locator(".headline");
  const title = view.region("inspect.past").locator("figcaption").first();
  await view.open(pace);
  await becomes(view.fact("inspect.is.in"), /^300\b/);
  await title.waitFor();
  assert.equal(await headline.count(), 0, "it does not grow");
  const [, [firstTime, firstKeys]] = await view.table("inspect.past");
  assert.equal(firstKeys, "300");

  const begun = Date.now();
  let keys = 300;
  let told;
  for (;;) {
    await command("add", "-q", "pace.bloom", { input: keyLines(keys, keys + 20) });
    keys += 20;
    await new Promise((done) => setTimeout(done, 400));
    if ((await headline.count()) === 0) continue;
    told = valuesOf(t("inspect.past.full"), await headline.innerText());
    const mean = (1000 * (keys - 300)) / (Date.now() - begun);
    // The time before the first keys counts, too, so the pace approaches the mean.
    if (numberOf(told.pace) > 0.6 * mean && numberOf(told.pace) < 1.6 * mean) break;
    assert(Date.now() - begun < 60_000, `${told.pace} per second, added ${mean}`);
  }

  const { keys_left: left, inserted, rate_now: rate } = await infoOf("pace.bloom");
  const takes = secondsOf(told.time) * numberOf(told.pace);
  assert(takes > 0.8 * left && takes < 1.3 * left, `${told.time} at ${told.pace} per second for ${left} keys`);
  // A sample may have been taken while the command was adding keys, so the last one is awaited.
  const shows = async () => {
    const rows = await view.table("inspect.past");
    assert.equal(rows[1][0], firstTime);
    assert.equal(Number(rows.at(-1)[1]), inserted);
    const shown = (await tableOf(view.region("inspect.past").locator("figure").nth(1))).at(-1)[1];
    assert(Math.abs(Number(shown) / rate - 1) < 0.001, `${shown}, by the command ${rate}`);
  };
  await eventually(shows);
  const more = valuesOf(t("inspect.past.more"), await title.innerText());
  assert.equal(numberOf(more.n), inserted - 300);

  await follow(page, "Learn");
  await view.region("inspect.past").waitFor({ state: "detached" });
  await follow(page, "Inspect");
  await view.named(names[full]);
  await view.open(pace);
  await eventually(shows);
  await page.reload();
  await eventually(shows);
  await noSeriousFindings(page);
});

test("Filters that are never full have no such forecast, but a history", async (page) => {
  const view = new InspectView(page);
  for (const i of [sealed, forgetful]) {
    await view.open(i);
    await view.named(names[i]);
    const rates = view.region("inspect.past").locator("figure").nth(1);
    await rates.locator("svg").waitFor();
    const before = (await tableOf(rates)).at(-1)[1];
    assert.equal(rounded(Number(before)), await view.rate("certified"));
    assert.equal(await page.locator(".headline").count(), 0);
  }
});

test("A plain filter of the command can be measured with its parameters", async (page) => {
  const view = new InspectView(page);
  await view.open(small);
  await page.getByRole("link", { name: t("inspect.measure") }).click();
  const said = page.getByRole("region", { name: t("play.controls") }).getByRole("status");

  const told = await eventually(async () => valuesOf(t("measure.filter"), (await said.innerText()).trim()));

  const { bits, probes } = await infoOf("small.bloom");
  assert.deepEqual([told.shape, numberOf(told.n), numberOf(told.bits), Number(told.k)], ["blocked", 500, bits, probes]);
  await view.open(sealed);
  await view.named(names[sealed]);
  await view.rate("certified");
  assert.equal(await page.getByRole("link", { name: t("inspect.measure") }).count(), 0);
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
    url.pathname = ["/api/1/inspections", given[number], ...url.pathname.split("/").slice(5)].join("/");
    const said = await (await route.fetch({ url: String(url) })).json();
    return route.fulfill({ json: { ...said, ...session("another"), number } });
  };
  // Ignore requests that are pending when the test ends.
  await page.route(/\/api\/1\/(about|inspections)/, (route) => answer(route).catch(() => {}));
  return startAnew;
}

for (const tells of [true, false]) {
  const how = tells ? "by the program's session" : "by the filter's name";
  const name = `Numbers never appear under another filter's name: detected ${how}`;
  test(name, { expects: [/net::ERR/, /404/] }, async (page) => {
    const view = new InspectView(page);
    const startAnew = await twoPrograms(page, [small, growing], { tells });
    await view.open(full);
    const before = await view.rate("certified");
    startAnew();

    await view.alerts("inspect.gone", { name: nameOf(full) });
    assert.equal(await page.locator("[data-rate]").count(), 0);
    assert.equal(await page.getByText(t("inspect.lost")).count(), 0, "the program answers");
    await page.getByRole("link", { name: nameOf(small), exact: true }).click();

    await view.named(nameOf(small));
    assert.notEqual(await view.rate("certified"), before);
  });
}

test("A filter is found under its number in another program", { expects: [/net::ERR/] }, async (page) => {
  const view = new InspectView(page);
  const startAnew = await twoPrograms(page, [small, full]);
  await view.open(full);
  const before = await view.rate("certified");
  startAnew();

  await becomes(() => new URL(page.url()).hash, `#inspect/${encodeURIComponent(nameOf(full))}`);
  await view.named(nameOf(full));
  assert.equal(await view.rate("certified"), before);
});

test("A restarted program's numbers appear, even if they have the same version", async (page) => {
  const view = new InspectView(page);
  let restart;
  const restarted = new Promise((resolve) => (restart = resolve));
  let session = "first";
  void restarted.then(() => (session = "another"));
  await page.route(/\/api\/1\/(about|inspections)/, async (route) => {
    const seen = Number(new URL(route.request().url()).searchParams.get("after"));
    if (seen > 0 && session === "another") return; // no further changes
    if (seen > 0) await restarted;
    const url = route
      .request()
      .url()
      .replace(/after=\d+/, "after=0");
    const said = await (await route.fetch({ url })).json();
    const certified = (session === "another" ? 2 : 1) * (said.certified ?? 0);
    return route.fulfill({ json: { ...said, session, certified, version: said.version && 1 } });
  });
  await view.open(full);
  const before = await view.rate("certified");

  restart();

  await eventually(async () => assert((await view.rate("certified")) > 1.9 * before));
});

test("A program without filters is not reported as silent", { expects: [/net::ERR/, /404/] }, async (page) => {
  const view = new InspectView(page);
  const startAnew = await twoPrograms(page, []);
  await view.open(small);
  await view.rate("certified");
  startAnew();

  await view.alerts("inspect.gone", { name: nameOf(small) });
  assert.equal(await page.getByText(t("inspect.lost")).count(), 0);
});

// ---- files that change ----

test("Keys added by another process appear without a reload", async (page) => {
  const view = new InspectView(page);
  await view.open(growing);
  const keysAre = (expected, tolerance) =>
    eventually(async () => {
      const keys = numberOf((await view.fact("inspect.is.in").innerText()).split("(")[0]);
      assert(Math.abs(keys - expected) < tolerance, `${keys} keys`);
    });
  await keysAre(300, 5);
  const before = await view.rate("certified");

  await command("add", "-q", "growing.bloom", { input: keyLines(300, 4000) });

  await keysAre(4000, 20);
  assert((await view.rate("certified")) > before);
  assert.match(await view.live.innerText(), /Live/);
});

test("A file that is missing at first is reported, and appears once it exists", async (page) => {
  const view = new InspectView(page);
  await page.goto(`/#inspect/${encodeURIComponent(nameOf(later))}`);
  await view.alerts("inspect.trouble.not_found.file");
  assert.equal(await page.title(), "later.bloom · bloomery");
  assert.equal(await page.locator("[data-rate]").count(), 0);
  await noSeriousFindings(page);

  await command("build", "-q", "-o", "later.bloom", "-n", "500", "few");

  assert.equal(await view.rate("promised"), 0.01);
  assert.equal(await view.alert.count(), 0);
});

test("A file that is gone or replaced is reported", async (page) => {
  const view = new InspectView(page);
  const file = nameOf(leaving);
  await view.open(leaving);
  const certified = await view.rate("certified");

  fs.renameSync(file, `${file}.away`);
  await view.alerts("inspect.trouble.not_found.file");
  assert.equal(await view.rate("certified"), certified);
  fs.writeFileSync(`${file}.other`, "this is no filter\n".repeat(500));
  fs.renameSync(`${file}.other`, file);
  await view.alerts("inspect.trouble.not_a_filter");
  await noSeriousFindings(page);
  fs.renameSync(`${file}.away`, file);
  await view.live.waitFor();
  assert.equal(await view.alert.count(), 0);
});

// ---- looks ----

for (const look of [{ language: "en" }, { language: "zh", width: 360, dark: true }, { language: "en", width: 360 }]) {
  test(`The view is accessible and fits: ${JSON.stringify(look)}`, look, async (page) => {
    const view = new InspectView(page);
    await view.open(full);
    await view.rate("certified");
    await becomes(() => page.locator(".plot svg").count(), 5); // three of the last hour
    await noSidewaysScrolling(page);
    await noSeriousFindings(page);
  });
}

test("Another filter can be chosen by keyboard and has its own link", async (page) => {
  const view = new InspectView(page);
  await page.goto("/#inspect");
  await view.named(names[full]);
  const choice = page.getByRole("combobox");
  await tabTo(page, choice);
  await choice.selectOption(String(small));
  await view.named(names[small]);
  assert.equal(new URL(page.url()).hash, `#inspect/${encodeURIComponent(nameOf(small))}`);
  assert.equal(await page.title(), "small.bloom · bloomery");

  await page.goBack();
  await view.named(names[full]);
  await becomes(() => page.title(), "full.bloom · bloomery");
  await follow(page, "Learn");
  await becomes(() => page.title(), /^(?!full)/);
});

nothing.test("Without a filter, the page shows how to name one", async (page) => {
  await page.goto("/#inspect");
  await page.getByText("bloomery playground seen.bloom", { exact: true }).waitFor();
  await noSeriousFindings(page);
});
