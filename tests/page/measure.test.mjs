// The Measure view: its charts match the command's measurements, and leaving an experiment ends it.
import assert from "node:assert/strict";

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

const { test, command, url } = playground();
const en = words("en");

const asks = {
  analysis: "measure.analysis.ask",
  benchmark: "measure.benchmark.ask",
  profile: "measure.profile.ask",
};

/** One panel of the view, with locators of its parts. */
function panel(page, name, say = en) {
  const place = page.getByRole("region", {
    name: say(asks[name]),
    exact: true,
  });
  return {
    place,
    field: (word) => place.getByLabel(say(word), { exact: true }),
    start: place.getByRole("button", {
      name: say("measure.start"),
      exact: true,
    }),
    cancel: place.getByRole("button", {
      name: say("measure.cancel"),
      exact: true,
    }),
    said: place.locator("form [role=status]"),
    title: place.locator("figcaption"),
    figure: place.locator("figure"),
  };
}

async function open(page, settings = {}) {
  await page.goto(`/#measure?${new URLSearchParams(settings)}`);
  await panel(page, "analysis").start.waitFor();
}

/** Presses Start and returns the id of the job. */
async function begin(page, one) {
  const answer = page.waitForResponse((r) => r.url().endsWith("/api/1/jobs") && r.request().method() === "POST");
  await one.start.click();
  return (await (await answer).json()).id;
}

async function done(one, seconds = 20, say = en) {
  await eventually(async () => assert.equal(await one.said.textContent(), say("measure.done")), seconds);
}

async function stateOf(job) {
  const answer = await fetch(`${url()}/api/1/jobs/${job}`);
  return answer.status === 404 ? "gone" : (await answer.json()).state;
}

const goneSoon = (job) => eventually(async () => assert.equal(await stateOf(job), "gone"));

/** The table of a chart; numeric cells as numbers. */
async function numbersOf(figure) {
  const [heads, ...rows] = await tableOf(figure);
  return {
    heads,
    rows: rows.map((row) => row.map((text) => (text === "" || isNaN(text) ? text : Number(text)))),
  };
}

/** What the command plans for a layout. */
async function planned(keys, rate, layout) {
  const { layouts } = JSON.parse(await command("plan", "-n", String(keys), "-p", rate, "--json"));
  return layouts.find((one) => one.layout === layout);
}

/** Runs until it is cancelled. */
const long = {
  "analysis.n": "1000000",
  "analysis.runs": "100",
  "analysis.queries": "100000",
};
/** Finishes at once. */
const small = {
  "analysis.n": "100",
  "analysis.runs": "2",
  "analysis.queries": "100",
};

// ---- the analysis ----

test("The expected curve appears before any measurement and matches the command's plan", async (page) => {
  await open(page, {
    "analysis.n": "500",
    "analysis.p": "0.02",
    "analysis.shape": "classic",
  });
  const one = panel(page, "analysis");

  const { heads, rows } = await numbersOf(one.figure);

  const exact = (await planned(500, "2%", "classic")).rate;
  assert.deepEqual(heads, [en("measure.col.keys"), en("measure.col.predicted")]);
  assert.deepEqual(rows[0], [0, 0]);
  assert(Math.abs(rows.find(([keys]) => keys === 500)[1] - exact) < 1e-6 * exact, `${exact}`);
  assert(rows.at(-1)[0] >= 750, "one and a half times as many keys");
});

for (const [shape, ...words] of [
  ["", "--layout", "split_block"],
  ["classic", "--layout", "classic", "--hash", "murmur3"],
  ["scheme:guava", "--scheme", "guava"],
]) {
  test(`An analysis matches the command's, number for number: ${words.join(" ")}`, async (page) => {
    const hash = words.includes("--hash") ? "murmur3" : "";
    await open(page, {
      "analysis.n": "200",
      "analysis.p": "2%",
      "analysis.shape": shape,
      ...(hash ? { "analysis.hash": hash } : {}),
      "analysis.runs": "6",
      "analysis.queries": "3000",
      "analysis.seed": "5",
    });
    const one = panel(page, "analysis");

    await begin(page, one);
    await done(one);

    const { rows } = await numbersOf(one.figure);
    const options = ["-n", "200", "-p", "0.02", "--runs", "6", "--queries", "3000", "--seed", "5", ...words];
    const truth = JSON.parse(await command("analyze", ...options, "--json", "--no-progress"));
    assert.deepEqual(
      rows,
      truth.points.map((at) => [at.keys, at.predicted, at.mean, at.deviation, ...at.rates]),
    );
    for (const [keys, predicted, mean, deviation] of rows) {
      const chance = Math.max(deviation, Math.sqrt(predicted / 3000), 1 / 3000) / Math.sqrt(6);
      assert(Math.abs(mean - predicted) < 5 * chance, `at ${keys} keys: ${mean}, predicted ${predicted}`);
    }
    const full = rows.find(([keys]) => keys === 200);
    const told = valuesOf(en("measure.analysis.title"), await one.title.textContent());
    assert.equal(told.keys, "200 keys");
    assert(Math.abs(numberOf(told.predicted) - full[1]) < 0.01 * full[1]);
    assert(Math.abs(numberOf(told.mean) - full[2]) < 0.01 * full[2]);
    assert.equal((await one.place.locator("code").textContent()).trim().split(/ +/)[1], "analyze");
  });
}

test("The command below the chart runs and repeats the experiment", async (page) => {
  await open(page, {
    "analysis.n": "100",
    "analysis.p": "5%",
    "analysis.runs": "3",
    "analysis.queries": "500",
  });
  const one = panel(page, "analysis");
  await begin(page, one);
  await done(one);

  const said = (await one.place.locator("code").textContent()).trim().split(/ +/);

  assert.equal(said.shift(), "bloomery");
  const truth = JSON.parse(await command(...said, "--json", "--no-progress"));
  const { rows } = await numbersOf(one.figure);
  assert.deepEqual(
    rows.map((row) => row.slice(4)),
    truth.points.map((at) => at.rates),
  );
});

test(
  "The chart shows how weak hashing departs from the expected curve of good hashes",
  { limit: 120 },
  async (page) => {
    await open(page, { "analysis.queries": "1000" });
    const one = panel(page, "analysis");
    await one.place.getByRole("button", { name: en("measure.example.weak") }).click();
    await one.field("measure.runs").fill("1");
    await one.field("measure.queries").fill("2000");

    await begin(page, one);
    await done(one, 110);

    const told = valuesOf(en("measure.analysis.title.weak"), await one.title.textContent());
    const { heads, rows } = await numbersOf(one.figure);
    const sound = heads.indexOf(en("measure.name.sound"));
    const full = rows.find(([keys]) => keys === 100_000);
    assert.match(told.scheme, /pharo$/);
    assert(Math.abs(full[1] - 0.32) < 0.01, `predicted ${full[1]}`);
    assert(Math.abs(full[sound] - 0.01) < 0.001, `hashed well ${full[sound]}`);
    assert(Math.abs(numberOf(told.mean) - full[1]) < 5 * Math.sqrt(full[1] / 2000));
  },
);

test("Partial results appear while the experiment runs", async (page) => {
  await open(page, long);
  const one = panel(page, "analysis");

  const job = await begin(page, one);

  await eventually(async () => {
    const { runs, all } = valuesOf(en("measure.analysis.sofar"), await one.title.textContent());
    assert(Number(runs) >= 1 && Number(runs) < 100 && all === "100");
  });
  const { heads } = await numbersOf(one.figure);
  assert(heads.includes(en("measure.col.run", { run: 1 })) && !heads.includes(en("measure.col.run", { run: 100 })));
  await one.cancel.click();
  await goneSoon(job);
});

test("A logarithmic scale shows the same numbers", async (page) => {
  await open(page, small);
  const one = panel(page, "analysis");
  await begin(page, one);
  await done(one);
  const before = await tableOf(one.figure);

  await one.field("measure.scale.log").check();

  await eventually(async () => assert.match(page.url(), /analysis\.scale=log/));
  await one.place.getByText(en("measure.axis.rate.log")).waitFor();
  assert.deepEqual(await tableOf(one.figure), before);
});

test("Typed settings go into the link and leave the rest of the view unchanged", async (page) => {
  await open(page);
  const one = panel(page, "analysis");
  await one.field("play.capacity").focus();

  await page.keyboard.press("End");
  await page.keyboard.type("50");

  await eventually(async () => assert.match(page.url(), /analysis\.n=100050$/));
  assert.equal(await one.field("play.capacity").evaluate((node) => node === document.activeElement), true);
  await one.field("play.capacity").fill("1000");
  await eventually(async () => assert.match(page.url(), /#measure$/));
});

test("The link repeats the experiment", async (page, context) => {
  await open(page);
  const one = panel(page, "analysis");
  for (const [word, value] of [
    ["play.capacity", "150"],
    ["play.rate", "3%"],
    ["measure.runs", "2"],
    ["measure.queries", "400"],
    ["measure.seed", "77"],
  ])
    await one.field(word).fill(value);
  await one.field("play.layout").selectOption("split_block512");
  await begin(page, one);
  await done(one);
  const first = await tableOf(one.figure);

  const other = await context.newPage();
  await other.goto(page.url());
  const again = panel(other, "analysis");
  assert.equal(await again.field("play.capacity").inputValue(), "150");
  assert.equal(await again.field("play.layout").inputValue(), "split_block512");
  await begin(other, again);
  await done(again);

  assert.deepEqual(await tableOf(again.figure), first);
});

test("Copying yields the numbers of the table", async (page, context) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await open(page, small);
  const one = panel(page, "analysis");
  await begin(page, one);
  await done(one);

  await one.place.getByRole("button", { name: en("chart.copy") }).click();

  await one.place.getByText(en("chart.copied")).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.deepEqual(
    copied
      .trimEnd()
      .split("\n")
      .map((line) => line.split("\t")),
    await tableOf(one.figure),
  );
});

test("A browser that does not allow copying is reported", async (page) => {
  // As for a page from another computer without encryption.
  await page.addInitScript(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await open(page);
  const one = panel(page, "analysis");

  await one.place.getByRole("button", { name: en("chart.copy") }).click();

  await one.place.getByText(en("chart.copied.not")).waitFor();
});

// ---- the benchmark and the profile ----

test("A benchmark has a bar for each structure, and its title follows from the bars", { limit: 60 }, async (page) => {
  await open(page, { "benchmark.sizes": "10, 20000" });
  const one = panel(page, "benchmark");

  await begin(page, one);
  await done(one, 50);

  const { rows } = await numbersOf(one.figure);
  const structures = ["filter", "list", "sorted", "hash_set"].map((s) => en(`measure.structure.${s}`));
  assert.deepEqual(
    rows.map(([keys, structure]) => [keys, structure]),
    [10, 20_000].flatMap((keys) => structures.map((structure) => [keys, structure])),
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
  await open(page, {
    "profile.n": "1000, 200 000",
    "profile.shape": "classic",
  });
  const one = panel(page, "profile");

  await begin(page, one);
  await done(one, 50);

  const { rows } = await numbersOf(one.figure);
  assert.deepEqual(
    rows.map(([keys]) => keys),
    [1000, 200_000],
  );
  for (const [keys, bytes, hash, probe, memory, total] of rows) {
    assert.equal(bytes, (await planned(keys, "1%", "classic")).bytes, `${keys} keys`);
    assert(hash > 0 && probe > 0 && memory >= 0);
    assert(Math.abs(hash + probe + memory - total) < 1e-9 * total);
  }
  const last = rows.at(-1);
  const part = ["hash", "probe", "memory"][[2, 3, 4].reduce((a, b) => (last[b] > last[a] ? b : a)) - 2];
  const told = valuesOf(en(`measure.profile.title.${part}`), await one.title.textContent());
  assert(Math.abs(numberOf(told.total) - last[5]) < 0.06);
});

// ---- jobs ----

test("Cancel ends the job", async (page) => {
  await open(page, long);
  const one = panel(page, "analysis");
  const job = await begin(page, one);
  await eventually(async () => assert.equal(await stateOf(job), "running"));

  await one.cancel.click();

  await goneSoon(job);
  assert.equal(await one.said.textContent(), en("measure.cancelled"));
  assert(await one.start.isEnabled());
  assert(await one.cancel.isDisabled());
});

test("Leaving the view, or the page, ends the job", async (page) => {
  await open(page, long);
  const left = await begin(page, panel(page, "analysis"));
  await page.getByRole("link", { name: en("nav.learn"), exact: true }).click();
  await goneSoon(left);

  await open(page, long);
  const closed = await begin(page, panel(page, "analysis"));
  await eventually(async () => assert.equal(await panel(page, "analysis").said.textContent(), en("measure.running")));
  await page.goto("about:blank");
  await goneSoon(closed);
});

test("The focus moves to the enabled button", async (page) => {
  await open(page, long);
  const one = panel(page, "analysis");
  const focused = (button) =>
    eventually(async () => assert(await button.evaluate((node) => node === document.activeElement)));

  await tabTo(page, one.start);
  const answer = page.waitForResponse((r) => r.url().endsWith("/api/1/jobs"));
  await page.keyboard.press("Enter");
  await focused(one.cancel);
  const job = (await (await answer).json()).id;
  await page.keyboard.press("Enter");
  await focused(one.start);
  await goneSoon(job);

  assert.equal(await one.said.textContent(), en("measure.cancelled"));
});

test("Results are kept when the reader leaves the view and returns", async (page) => {
  await open(page, { ...small, "analysis.n": "150", "profile.n": "1000" });
  const [one, other] = [panel(page, "analysis"), panel(page, "profile")];
  for (const each of [one, other]) {
    await begin(page, each);
    await done(each);
  }
  const before = [await tableOf(one.figure), await tableOf(other.figure)];

  await page.getByRole("link", { name: en("nav.learn"), exact: true }).click();
  await one.place.waitFor({ state: "detached" });
  await page.getByRole("link", { name: en("nav.measure"), exact: true }).click();

  await other.figure.waitFor();
  assert.deepEqual([await tableOf(one.figure), await tableOf(other.figure)], before);
  assert.equal(await one.field("play.capacity").inputValue(), "150");
  assert.equal(await one.said.textContent(), en("measure.done"));
  await eventually(async () => assert.match(page.url(), /analysis\.n=150.*profile\.n=1000/));
});

test("A second experiment waits for the first, and says so", async (page) => {
  await open(page, { ...long, "benchmark.sizes": "10" });
  const [first, second] = [panel(page, "analysis"), panel(page, "benchmark")];
  await begin(page, first);

  await begin(page, second);

  await eventually(async () => assert.equal(await second.said.textContent(), en("measure.waiting")));
  await first.cancel.click();
  await done(second);
});

test(
  "An outage is reported, and the experiment continues afterwards",
  { expects: [/net::ERR/] },
  async (page, context) => {
    // Timers of half a second or more never fire, so that the page does not poll by itself.
    await page.addInitScript(() => {
      const later = setTimeout;
      globalThis.setTimeout = (work, wait = 0, ...more) => (wait < 500 ? later(work, wait, ...more) : 0);
    });
    await open(page, {
      "analysis.n": "50000",
      "analysis.runs": "20",
      "analysis.queries": "2000",
    });
    const one = panel(page, "analysis");
    const looks = "**/api/1/jobs/*";
    await context.route(looks, (route) => route.abort());
    await begin(page, one);

    await eventually(async () => assert.equal(await one.said.textContent(), en("measure.away")));
    await context.unroute(looks);
    await one.place.getByRole("button", { name: en("measure.again") }).click();

    await done(one);
  },
);

test(
  "After a restart of the server, the page reports the lost experiment and what to do",
  { expects: [/404/] },
  async (page) => {
    await open(page, long);
    const one = panel(page, "analysis");
    const job = await begin(page, one);

    await fetch(`${url()}/api/1/jobs/${job}`, { method: "DELETE" });

    await eventually(async () => assert.equal(await one.said.textContent(), en("measure.lost")));
    assert(await one.start.isEnabled());
  },
);

test(
  "Start without a server reports it, and works once the server is back",
  { expects: [/net::ERR/] },
  async (page, context) => {
    await open(page, { "benchmark.sizes": "10" });
    const one = panel(page, "benchmark");
    await context.route("**/api/**", (route) => route.abort());
    await one.start.click();
    await eventually(async () => assert.equal(await one.said.textContent(), en("measure.away.start")));

    await context.unroute("**/api/**");
    await one.start.click();

    await done(one);
  },
);

// ---- input ----

for (const [name, ...cases] of [
  [
    "analysis",
    ["play.capacity", "-3", /a whole number.*-3/],
    ["play.capacity", "many", /a whole number.*many/],
    ["play.capacity", "2000000", /at most 1,000,000/],
    ["play.rate", "200%", /between 0 and 1.*2/],
    ["measure.runs", "0", /1 to 100/],
    ["measure.queries", "x", /1 to 1,000,000/],
    ["measure.seed", "-1", /digits/],
  ],
  [
    "benchmark",
    ["measure.sizes", "10, 0", /1 to 1,000,000/],
    ["measure.sizes", "10, abc", /whole numbers.*not a number: abc/],
  ],
  [
    "profile",
    ["play.capacity", "10,,20", /whole numbers.*missing/],
    ["play.capacity", "200 000 000", /too large/],
    ["play.rate", "0", /between 0 and 1/],
  ],
]) {
  test(`Invalid input is reported beside its field: ${name}`, { expects: [/status of 4/], limit: 60 }, async (page) => {
    await open(page);
    const one = panel(page, name);
    for (const [word, typed, said] of cases) {
      const field = one.field(word);
      const usual = await field.inputValue();

      await field.fill(typed);
      await field.press("Enter");

      const described = await field.getAttribute("aria-describedby");
      await eventually(async () => assert.match(await page.locator(`[id="${described}"]`).textContent(), said));
      assert.equal(await field.getAttribute("aria-invalid"), "true");
      assert.equal(await field.inputValue(), typed);
      assert.equal(await one.place.locator("[role=alert]").count(), 0, "it is reported once");
      await field.fill(usual);
      await eventually(async () => assert.equal(await field.getAttribute("aria-invalid"), "false"));
    }
  });
}

test("The view can be used by keyboard", async (page) => {
  await open(page, small);
  const one = panel(page, "analysis");

  await tabTo(page, one.field("measure.runs"));
  await page.keyboard.press("Enter");
  await done(one);
  await tabTo(page, one.place.locator("summary"));
  await page.keyboard.press("Enter");

  assert(await one.place.locator("table").isVisible());
});

// ---- accessibility ----

test(
  "The view fits and is accessible: wide and narrow, light and dark, in both languages",
  { limit: 120 },
  async (page) => {
    await open(page, {
      "analysis.n": "200",
      "analysis.runs": "3",
      "analysis.queries": "500",
      "benchmark.sizes": "10,1000",
      "profile.n": "1000,100000",
    });
    for (const name of Object.keys(asks)) {
      const one = panel(page, name);
      await one.start.click();
      await done(one, 30);
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
      const was = words(now.language);
      if (look.dark !== now.dark) await page.getByRole("button", { name: was("nav.theme.label") }).click();
      if (look.language !== now.language) await page.getByRole("button", { name: was("nav.language.label") }).click();
      now = look;
      assert.equal(await page.locator("html").getAttribute("data-theme"), look.dark ? "dark" : "light");
      for (const name of Object.keys(asks)) {
        const one = panel(page, name, words(look.language));
        await eventually(async () =>
          assert.equal(
            await one.figure.locator("svg[role=img]").getAttribute("aria-label", { timeout: 1000 }),
            await one.title.textContent(),
          ),
        );
      }

      await noSidewaysScrolling(page);
      await noSeriousFindings(page);
    }
  },
);
