// The Measure view: its charts match the command's measurements, and leaving an experiment ends it.
import assert from "node:assert/strict";
import {
  becomes,
  copied,
  disconnect,
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
  words,
} from "./browser.mjs";

const { test, command, url } = playground();
const en = words("en");

/** One panel of the view: "analysis", "benchmark" or "profile". */
class Panel {
  constructor(page, name, say = en) {
    this.page = page;
    this.place = page.getByRole("region", { name: say(`measure.${name}.ask`), exact: true });
    this.start = this.button("measure.start", say);
    this.cancel = this.button("measure.cancel", say);
    this.said = this.place.locator("form [role=status]");
    this.title = this.place.locator("figcaption");
    this.figure = this.place.locator("figure");
  }

  button = (word, say = en) => this.place.getByRole("button", { name: say(word), exact: true });
  field = (word) => this.place.getByLabel(en(word), { exact: true });
  says = (word, seconds) => becomes(() => this.said.textContent(), en(word), seconds);
  done = (seconds = 20) => this.says("measure.done", seconds);
  table = () => tableOf(this.figure);

  /** Presses Start, or another button, and returns the id of the job. */
  async begin(press = () => this.start.click()) {
    const answer = this.page.waitForResponse((r) => r.url().endsWith("/api/1/jobs") && r.request().method() === "POST");
    await press();
    return (await (await answer).json()).id;
  }

  async run(seconds) {
    await this.begin();
    await this.done(seconds);
  }

  /** The table of the chart, with numeric cells as numbers. */
  async numbers() {
    const [heads, ...rows] = await this.table();
    return {
      heads,
      rows: rows.map((row) => row.map((text) => (text === "" || isNaN(text) ? text : Number(text)))),
    };
  }

  /** The arguments of the command below the chart. */
  command = async () => (await this.place.locator("code").textContent()).trim().split(/ +/).slice(1);
}

/** The controls of the filter, which are the same for all panels. */
const controls = (page) => page.getByRole("region", { name: en("play.controls"), exact: true });
const filterField = (page, word) => controls(page).getByLabel(en(word), { exact: true });

/** Opens the view and returns its three panels. */
async function open(page, settings = {}) {
  await page.goto(`/#measure?${new URLSearchParams(settings)}`);
  const panels = ["analysis", "benchmark", "profile"].map((name) => new Panel(page, name));
  await becomes(() => panels[1].start.isEnabled(), true); // the filter is planned
  return panels;
}

async function stateOf(job) {
  const answer = await fetch(`${url()}/api/1/jobs/${job}`);
  return answer.status === 404 ? "gone" : (await answer.json()).state;
}

const goneSoon = (job) => becomes(() => stateOf(job), "gone");

/** What the command plans for the layout classic. */
async function planned(keys, rate) {
  const { layouts } = JSON.parse(await command("plan", "-n", String(keys), "-p", rate, "--json"));
  return layouts.find((one) => one.layout === "classic");
}

const analysis = (capacity, runs, queries) => ({
  capacity,
  rate: 0.01,
  "analysis.runs": runs,
  "analysis.queries": queries,
});
const long = analysis(1_000_000, 100, 100_000); // runs until it is cancelled
const small = analysis(100, 2, 100); // finishes at once

// ---- the analysis ----

test("The expected curve matches the command's plan, and the analysis the command's", { limit: 60 }, async (page) => {
  const [curve] = await open(page, { capacity: 500, rate: 0.02, layout: "classic" });

  const { heads, rows: expected } = await curve.numbers();

  const exact = (await planned(500, "2%")).rate;
  assert.deepEqual(heads, [en("measure.col.keys"), en("measure.col.predicted")]);
  assert.deepEqual(expected[0], [0, 0]);
  assert(Math.abs(expected.find(([keys]) => keys === 500)[1] - exact) < 1e-6 * exact, `${exact}`);
  assert(expected.at(-1)[0] >= 750, "one and a half times as many keys");

  for (const [settings, ...options] of [
    [{ rate: 0.02, seed: 5 }, "-p", "2%", "--layout", "split_block", "--seed", "5"],
    [
      { rate: "", bits: 1500, probes: 3, layout: "classic" },
      "-m",
      "1500",
      "-k",
      "3",
      "--layout",
      "classic",
      "--seed",
      "0",
    ],
    [{ rate: 0.02, layout: "classic", hash: "murmur3" }, "-p", "2%", "--layout", "classic", "--hash", "murmur3"],
    [{ rate: 0.02, scheme: "guava" }, "-p", "2%", "--scheme", "guava"],
  ]) {
    const [one] = await open(page, { ...analysis(200, 6, 3000), ...settings });
    await one.run();

    const { rows } = await one.numbers();
    const usual = ["-n", "200", "--runs", "6", "--queries", "3000"];
    const measured = async (...words) => JSON.parse(await command(...words, "--json", "--no-progress"));
    const truth = await measured("analyze", ...usual, ...options);
    assert.deepEqual(
      rows,
      truth.points.map((at) => [at.keys, at.predicted, at.mean, at.deviation, ...at.rates]),
    );
    const below = await one.command();
    assert.equal(below[0], "analyze");
    assert.deepEqual((await measured(...below)).points, truth.points, "the command below the chart repeats it");
    const full = rows.find(([keys]) => keys === 200);
    const told = valuesOf(en("measure.analysis.title"), await one.title.textContent());
    assert.equal(told.keys, "200 keys");
    assert(Math.abs(numberOf(told.predicted) - full[1]) < 0.01 * full[1]);
    assert(Math.abs(numberOf(told.mean) - full[2]) < 0.01 * full[2]);
  }
});

const weak = { limit: 120 };
test("The chart shows how weak hashing departs from the curve of good hashes", weak, async (page) => {
  const [one] = await open(page, { "analysis.queries": "1000" });
  await one.button("measure.example.weak").click();
  await one.field("measure.runs").fill("1");
  await one.field("measure.queries").fill("2000");

  await one.run(110);

  const told = valuesOf(en("measure.analysis.title.weak"), await one.title.textContent());
  const { heads, rows } = await one.numbers();
  const sound = heads.indexOf(en("measure.name.sound"));
  const full = rows.find(([keys]) => keys === 100_000);
  assert.match(told.scheme, /pharo$/);
  assert(Math.abs(full[1] - 0.32) < 0.01, `predicted ${full[1]}`);
  assert(Math.abs(full[sound] - 0.01) < 0.001, `hashed well ${full[sound]}`);
  assert(Math.abs(numberOf(told.mean) - full[1]) < 5 * Math.sqrt(full[1] / 2000));
});

test("A link repeats the experiment, and its settings are typed by the reader", async (page, context) => {
  const [one] = await open(page);
  const keys = filterField(page, "play.capacity");
  await keys.focus();
  await page.keyboard.press("End");
  await page.keyboard.type("50");
  await becomes(() => page.url(), /#measure\?capacity=100050&rate=0\.01$/);
  await focused(keys);
  await keys.fill("1000");
  await becomes(() => page.url(), /#measure$/); // the usual number

  await keys.fill("150");
  await filterField(page, "play.rate").fill("3%");
  await filterField(page, "play.seed").fill("77");
  await filterField(page, "play.layout").selectOption("split_block512");
  await one.field("measure.runs").fill("2");
  await one.field("measure.queries").fill("400");
  await becomes(() => page.url(), /layout=split_block512&seed=77.*queries=400/);
  await one.run();

  const other = await context.newPage();
  await other.goto(page.url());
  const again = new Panel(other, "analysis");
  await becomes(() => filterField(other, "play.capacity").inputValue(), "150");
  assert.equal(await filterField(other, "play.layout").inputValue(), "split_block512");
  await again.run();
  assert.deepEqual(await again.table(), await one.table());
});

test("Copying yields the table's numbers, on any scale and after a return", async (page, context) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const [one, , other] = await open(page, { ...small, capacity: 150, "profile.sizes": "1000" });
  for (const each of [one, other]) await each.run();
  const before = [await one.table(), await other.table()];

  await one.field("measure.scale.log").check();
  await becomes(() => page.url(), /analysis\.scale=log/);
  await one.place.getByText(en("measure.axis.rate.log")).waitFor();
  assert.deepEqual(await one.table(), before[0]);

  await one.button("chart.copy").click();
  await one.place.getByText(en("chart.copied")).waitFor();
  const rows = (await copied(page)).trimEnd().split("\n");
  assert.deepEqual(
    rows.map((line) => line.split("\t")),
    before[0],
  );

  await follow(page, en("nav.learn"));
  await one.place.waitFor({ state: "detached" });
  await follow(page, en("nav.measure"));
  await other.figure.waitFor();
  assert.deepEqual([await one.table(), await other.table()], before);
  assert.equal(await filterField(page, "play.capacity").inputValue(), "150");
  await one.says("measure.done");
  await becomes(() => page.url(), /capacity=150.*profile\.sizes=1000/);
});

test("A browser that does not allow copying is reported", async (page) => {
  // As for a page from another computer without encryption.
  await page.addInitScript(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  const [one] = await open(page);

  await one.button("chart.copy").click();

  await one.place.getByText(en("chart.copied.not")).waitFor();
});

// ---- the benchmark and the profile ----

test("A benchmark has a bar for each structure, and its title follows from the bars", { limit: 60 }, async (page) => {
  const [, one] = await open(page, { capacity: 20_000, rate: 0.01, layout: "classic", "benchmark.sizes": "10, 40000" });

  await one.run(50);

  const { rows } = await one.numbers();
  const structures = ["filter", "list", "sorted", "hash_set"].map((s) => en(`measure.structure.${s}`));
  assert.deepEqual(
    rows.map(([keys, structure]) => [keys, structure]),
    [10, 20_000, 40_000].flatMap((keys) => structures.map((structure) => [keys, structure])),
  );
  for (const [, , median, low, high] of rows) assert(0 < low && low <= median && median <= high);
  const at = (keys, structure) => rows.find(([k, s]) => k === keys && s === en(`measure.structure.${structure}`));
  assert(at(20_000, "list")[2] < at(10, "list")[2] / 20, "a list is searched from its beginning");
  const [filter, set] = [at(20_000, "filter"), at(20_000, "hash_set")];
  const title = await one.title.textContent();
  if (filter[3] <= set[4] && set[3] <= filter[4]) {
    valuesOf(en("measure.benchmark.title.same"), title);
  } else {
    const faster = filter[2] > set[2];
    const told = valuesOf(en(faster ? "measure.benchmark.title" : "measure.benchmark.title.slower"), title);
    const ratio = faster ? filter[2] / set[2] : set[2] / filter[2];
    assert(Math.abs(numberOf(told.times) - ratio) < 0.06 * ratio);
  }
  assert.match(await one.place.innerText(), new RegExp(en("measure.benchmark.log").replace(/\./g, "\\.")));
});

test("A profile has a bar for each number of keys, and its parts add up to the total", { limit: 60 }, async (page) => {
  const [, , one] = await open(page, { capacity: 1000, rate: 0.01, layout: "classic", "profile.sizes": "200 000" });

  await one.run(50);

  const { rows } = await one.numbers();
  assert.deepEqual(
    rows.map(([keys]) => keys),
    [1000, 200_000],
  );
  for (const [keys, bytes, hash, probe, memory, total] of rows) {
    assert.equal(bytes, (await planned(keys, "1%")).bytes, `${keys} keys`);
    assert(hash > 0 && probe > 0 && memory >= 0);
    assert(Math.abs(hash + probe + memory - total) < 1e-9 * total);
  }
  const [own] = rows;
  const part = ["hash", "probe", "memory"][[2, 3, 4].reduce((a, b) => (own[b] > own[a] ? b : a)) - 2];
  const told = valuesOf(en(`measure.profile.title.${part}`), await one.title.textContent());
  assert(Math.abs(numberOf(told.total) - own[5]) < 0.06);
});

// ---- jobs ----

test("Partial results appear while the experiment runs, and Cancel ends the job", { limit: 90 }, async (page) => {
  const [first, , second] = await open(page, { ...analysis(20_000, 100, 1_000_000), "profile.sizes": "" });
  const job = await first.begin();
  await eventually(async () => {
    const { runs, all } = valuesOf(en("measure.analysis.sofar"), await first.title.textContent());
    assert(Number(runs) >= 1 && Number(runs) < 100 && all === "100");
  });
  const { heads } = await first.numbers();
  assert(heads.includes(en("measure.col.run", { run: 1 })) && !heads.includes(en("measure.col.run", { run: 100 })));
  assert.equal(await stateOf(job), "running");

  await second.begin(); // waits for the first
  await second.says("measure.waiting");
  await first.cancel.click();
  await goneSoon(job);
  await first.says("measure.cancelled");
  assert(await first.start.isEnabled());
  assert(await first.cancel.isDisabled());
  await second.done();
});

test("Leaving the view, or the page, ends the job", async (page) => {
  const [one] = await open(page, long);
  const left = await one.begin();
  await follow(page, en("nav.learn"));
  await goneSoon(left);

  const [again] = await open(page, long);
  const closed = await again.begin();
  await again.says("measure.running");
  await page.goto("about:blank");
  await goneSoon(closed);
});

test("The view can be used by keyboard, and the focus moves to the enabled button", async (page) => {
  const [one] = await open(page, long);
  await tabTo(page, one.start);
  const job = await one.begin(() => page.keyboard.press("Enter"));
  await focused(one.cancel);
  await page.keyboard.press("Enter");
  await focused(one.start);
  await goneSoon(job);
  await one.says("measure.cancelled");

  await open(page, small);
  await tabTo(page, one.field("measure.runs"));
  await page.keyboard.press("Enter");
  await one.done();
  await tabTo(page, one.place.locator("summary"));
  await page.keyboard.press("Enter");
  assert(await one.place.locator("table").isVisible());
});

const outage = { expects: [/net::ERR/, /404/] };
test("Outages and lost experiments are reported, and Start works afterwards", outage, async (page) => {
  // Timers of half a second or more never fire, so that the page does not poll by itself.
  await page.addInitScript(() => {
    const later = setTimeout;
    globalThis.setTimeout = (work, wait = 0, ...more) => (wait < 500 ? later(work, wait, ...more) : 0);
  });
  const [one, other] = await open(page, { ...analysis(50_000, 20, 2000), "benchmark.sizes": "10" });
  let reconnect = await disconnect(page, "**/api/1/jobs/*");
  await one.begin();
  await one.says("measure.away");
  await reconnect();
  await one.button("measure.again").click();
  await one.done();

  reconnect = await disconnect(page);
  await other.start.click();
  await other.says("measure.away.start");
  await reconnect();
  await other.run();
});

test("After a restart of the server, the page reports the lost experiment and what to do", outage, async (page) => {
  const [one] = await open(page, long);
  const job = await one.begin();

  await fetch(`${url()}/api/1/jobs/${job}`, { method: "DELETE" });

  await one.says("measure.lost");
  assert(await one.start.isEnabled());
});

// ---- input ----

test("Invalid input is reported beside its field, once", { expects: [/status of 4/], limit: 60 }, async (page) => {
  const [analysis, benchmark, profile] = await open(page);
  for (const [one, word, typed, said] of [
    [analysis, "measure.runs", "0", /1 to 100/],
    [analysis, "measure.queries", "x", /1 to 1,000,000/],
    [benchmark, "measure.sizes", "10, 0", /1 to 1,000,000/],
    [benchmark, "measure.sizes", "10, abc", /whole numbers.*not a number: abc/],
    [benchmark, "measure.sizes", "1,2,3,4,5,6", /one to six/],
    [profile, "measure.sizes", "10,,20", /whole numbers.*missing/],
    [profile, "measure.sizes", "200 000 000", /too large/],
  ]) {
    const field = one.field(word);
    const isInvalid = () => field.getAttribute("aria-invalid");
    const usual = await field.inputValue();
    await field.fill(typed);
    await field.press("Enter");

    const described = await field.getAttribute("aria-describedby");
    await becomes(() => page.locator(`[id="${described}"]`).textContent(), said);
    assert.equal(await isInvalid(), "true");
    assert.equal(await field.inputValue(), typed);
    assert.equal(await one.place.locator("[role=alert]").count(), 0);
    await field.fill(usual);
    await becomes(isInvalid, "false");
  }

  const keys = filterField(page, "play.capacity");
  await keys.fill("many");
  await page.getByText(en("measure.filter.none")).waitFor();
  for (const one of [analysis, benchmark, profile]) assert(await one.start.isDisabled());
  assert.equal(await keys.getAttribute("aria-invalid"), "true");
  await keys.fill("2000000");
  await analysis.start.click();
  await becomes(analysis.place.getByRole("alert"), /at most 1,000,000/);
});

// ---- the filter ----

/** The values of the sentence about the filter, once the filter is planned. */
const statement = (page) =>
  eventually(async () => valuesOf(en("measure.filter"), (await controls(page).getByRole("status").innerText()).trim()));

test("The filter of Play is measured by all experiments, and returns to Play", { limit: 90 }, async (page) => {
  const requests = [];
  page.on("request", (asked) => asked.url().endsWith("/api/1/jobs") && requests.push(asked.postDataJSON()));
  const wanted = { layout: "blocked", hash: "murmur3", capacity: 700, bits: 8192, probes: 4 };
  await page.goto(`/#play?${new URLSearchParams(wanted)}`);
  await page.getByRole("link", { name: en("play.measure") }).click();
  const panels = ["analysis", "benchmark", "profile"].map((name) => new Panel(page, name));

  const { shape, n, bits, k } = await statement(page);
  await panels[0].field("measure.runs").fill("1");
  await panels[0].field("measure.queries").fill("100");
  await panels[1].field("measure.sizes").fill("10");
  await panels[2].field("measure.sizes").fill("5000");
  for (const one of panels) await one.run(30);

  assert.deepEqual([shape, n, bits, k], ["blocked", "700", "8,192", "4"]);
  const [analysis, benchmark, profile, other] = requests;
  for (const one of [analysis, benchmark, profile]) assert.deepEqual(one.filter, wanted);
  assert.deepEqual(benchmark.sizes, [10, 700]);
  assert.deepEqual([other.kind, other.filter.capacity, other.filter.layout], ["profile", 5000, "blocked"]);
  assert.deepEqual(
    (await panels[2].numbers()).rows.map(([keys, bytes]) => [keys, keys === 700 ? bytes : 0]),
    [
      [700, 1024],
      [5000, 0],
    ],
  );
  await page.getByRole("link", { name: en("learn.card.play") }).click();
  await becomes(() => page.url(), /#play\?.*capacity=700.*bits=8192/);
});

test("Experiments that do not support a filter say so", async (page) => {
  const [analysis, benchmark, profile] = await open(page, { layout: "counting", capacity: 100, rate: 0.1 });
  await analysis.place.getByText(en("measure.analysis.counting")).waitFor();
  assert.deepEqual(await Promise.all([analysis, benchmark, profile].map((one) => one.start.isEnabled())), [
    false,
    true,
    true,
  ]);

  await page.goto("/#measure?scheme=pharo&capacity=100&rate=0.1");
  await profile.place.getByText(en("measure.profile.scheme")).waitFor();
  await becomes(() => analysis.start.isEnabled(), true);
  assert.deepEqual(await Promise.all([analysis, benchmark, profile].map((one) => one.start.isEnabled())), [
    true,
    true,
    false,
  ]);
});

// ---- accessibility ----

test("The view is accessible and fits: wide and narrow, light and dark, in both languages", weak, async (page) => {
  const settings = { ...analysis(200, 3, 500), "benchmark.sizes": "10,1000", "profile.sizes": "1000,100000" };
  for (const one of await open(page, settings)) {
    await one.start.click();
    await one.done(30);
    await one.place.locator("summary").click();
  }

  let now = { dark: false, language: "en" };
  for (const look of [
    { width: 1280, dark: false, language: "en" },
    { width: 360, dark: true, language: "en" },
    { width: 360, dark: false, language: "zh" },
    { width: 1280, dark: true, language: "zh" },
  ]) {
    await page.setViewportSize({ width: look.width, height: 800 });
    const press = (word) => page.getByRole("button", { name: words(now.language)(word) }).click();
    if (look.dark !== now.dark) await press("nav.theme.label");
    if (look.language !== now.language) await press("nav.language.label");
    now = look;
    assert.equal(await page.locator("html").getAttribute("data-theme"), look.dark ? "dark" : "light");
    for (const name of ["analysis", "benchmark", "profile"]) {
      const one = new Panel(page, name, words(look.language));
      const label = () => one.figure.locator("svg[role=img]").getAttribute("aria-label", { timeout: 1000 });
      await eventually(async () => assert.equal(await label(), await one.title.textContent()));
    }

    await noSidewaysScrolling(page);
    await noSeriousFindings(page);
  }
});
