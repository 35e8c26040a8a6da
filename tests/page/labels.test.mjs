// No text of the page is clipped or covered: each view and chart, with few and with very many keys, on phones, tablets
// and desktops. labels_view.mjs finds the faults. BLOOMERY_LABELS_LIST=1 lists all faults instead of failing.
import assert from "node:assert/strict";
import process from "node:process";
import { becomes, isLong, playground, words } from "./browser.mjs";
import { answerInspections, answerJobs, inspection, sharded } from "./labels_answers.mjs";
import { faultsOf, recordCanvasText, settled } from "./labels_view.mjs";

const { test } = playground();
const t = words("en");
const widths = [360, 820, 1440];
const sizes = [10, 1e6, 1e9];

/** Asserts that nothing is clipped at any width, and on a phone in Chinese. */
async function fits(page, name) {
  const faults = [];
  const look = async (width, language) => {
    await page.setViewportSize({ width, height: 900 });
    await settled(page);
    for (const fault of await faultsOf(page)) faults.push(`${name}, ${width} px, ${language}: ${fault}`);
  };
  for (const width of widths) await look(width, "en");
  const [english, chinese] = ["en", "zh"].map((language) =>
    page.getByRole("button", { name: words(language)("nav.language.label") }),
  );
  await english.click();
  await chinese.waitFor();
  await look(widths[0], "zh");
  await chinese.click();
  await english.waitFor();
  report(faults);
}

function report(faults) {
  if (process.env.BLOOMERY_LABELS_LIST) console.log(faults.join("\n"));
  else assert.deepEqual(faults, []);
}

/** Opens an address with the canvas's texts recorded. */
async function open(page, where, width = widths[0]) {
  await recordCanvasText(page);
  await page.setViewportSize({ width, height: 900 });
  await page.goto(where);
}

// ---- Learn ----

const press = (page, name, values) => page.getByRole("button", { name: t(name, values), exact: true }).click();

const chapters = {
  1: (page) => press(page.locator("article"), "learn.ask", { key: "Madrid" }),
  async 2(page) {
    await press(page, "learn.add", { key: "Madrid" });
    await press(page, "learn.add", { key: "Barcelona" });
  },
  3: (page) => press(page, "learn.ask", { key: "Berlin" }),
  4: (page) => press(page, "learn.ask", { key: "Roma" }),
  async 5(page) {
    await press(page, "learn.5.force");
    await press(page, "learn.5.take");
  },
  async 7(page) {
    await press(page, "learn.7.all", { count: "1,500" });
    await page.locator(".said", { hasText: "1,500" }).waitFor();
  },
  async 8(page) {
    for (const name of ["weak", "sound"])
      await press(page, "learn.8.fill", { count: "200,000", name: t(`learn.8.${name}`) });
    await becomes(() => page.locator("figure").count(), 3, 50);
    await becomes(() => page.locator("figure svg[role=img]").count(), 3);
  },
  async 9(page) {
    await press(page, "learn.ask", { key: "Madrid" });
    await press(page, "learn.ask", { key: "Roma" });
  },
  async 10(page) {
    for (let i = 0; i < 4; ++i) await press(page, "learn.10.add", { count: "10,000" });
    await page.locator("dd", { hasText: "40,000" }).waitFor();
  },
  async 11(page) {
    for (const key of ["Madrid", "Barcelona", "Roma"]) await press(page, "learn.add", { key });
    await press(page, "learn.11.tick8");
  },
  async 12(page) {
    for (let copies = 1; copies <= 5; ++copies) {
      await press(page, copies === 1 ? "learn.12.first" : "learn.12.another");
      await becomes(() => page.locator("article thead th").count(), 1 + copies);
    }
    await press(page, "learn.12.check");
  },
  13: (page) => page.locator("article h1").waitFor(),
};
for (const [chapter, act] of Object.entries(chapters)) {
  test(`Chapter ${chapter} of Learn fits`, { limit: 90 }, async (page) => {
    await open(page, `/#learn/${chapter}`);
    await act(page);
    await page.locator(".rule").or(page.locator("article button:enabled")).first().waitFor();
    await settled(page, 1600); // the steps of hashing
    await fits(page, `chapter ${chapter}`);
  });
}

test("Chapter 6 of Learn fits with 10 to 10^8 keys, by FPR and by memory", { limit: 60 }, async (page) => {
  await open(page, "/#learn/6");
  for (const [n, p] of [
    [0, 3],
    [50, 60],
    [70, 60],
  ]) {
    await page.locator("#n").fill(String(n));
    await page.locator("#p").fill(String(p));
    await page.locator("figure svg").waitFor();
    await settled(page, 500);
    await fits(page, `chapter 6, n ${n}, p ${p}`);
  }
  await page.getByLabel(t("learn.6.know.bits")).check();
  await page.locator("#m").fill("108");
  await settled(page, 500);
  await fits(page, "chapter 6, by memory");
});

// ---- Play ----

/** Filters of Play; 10^9 keys need all bits that the playground allows. */
const filters = {
  "10 keys": "capacity=10&rate=0.01&layout=classic",
  "10 keys of a scheme": "scheme=pharo&capacity=10&rate=0.1&keys=Madrid,Barcelona,Roma",
  "1,000 keys": "capacity=100&rate=0.0001&layout=classic",
  "10,000 keys": "capacity=10000&rate=0.01",
  "10^6 keys": "capacity=1000000&rate=0.01",
  "10^6 keys, tiny FPR": "capacity=1000000&rate=0.000001&layout=classic",
  "10^9 keys": "capacity=1000000000&bits=1073741824&layout=classic",
  "counters, 10 keys": "layout=counting&capacity=10&rate=0.01",
  "counters, 10^6 keys": "layout=counting&capacity=1000000&rate=0.01",
  "layers, 10 keys": "grows=true&capacity=10&rate=0.01",
  "window, 10^6 keys": "window_keys=1000000&rate=0.01",
};

/**
 * Zooms in until single cells are as large as possible, and looks at the last cells, whose numbers are the longest: at
 * each step with BLOOMERY_LONG=1, otherwise at every fourth step and at the last one.
 */
async function zoomIn(page, name) {
  const faults = [];
  const closer = page.getByRole("button", { name: t("bits.closer") });
  const cursor = page.getByRole("slider", { name: t("bits.cursor") });
  for (let step = 0; ; ++step) {
    const isLast = !(await closer.isEnabled());
    if (isLong || isLast || step % 4 === 0) {
      await cursor.press("End");
      await settled(page, 100);
      for (const fault of await faultsOf(page, "canvas")) faults.push(`${name}: ${fault}`);
    }
    if (isLast) return report([...new Set(faults)]);
    await closer.click();
  }
}

for (const [name, query] of Object.entries(filters)) {
  test(`Play fits: ${name}`, { limit: 120 }, async (page) => {
    await open(page, `/#play?${query}`);
    await page.locator("canvas[data-size]").waitFor();
    await press(page, "play.addresses");
    await page.locator("figure svg").first().waitFor();
    await settled(page, 400);
    await fits(page, name);
    await page.setViewportSize({ width: name === "10^9 keys" ? 1440 : 360, height: 900 });
    await settled(page);
    await zoomIn(page, name);
  });
}

// ---- Measure ----

for (const n of sizes) {
  for (const p of ["10%", "0.0000001%"]) {
    test(`Measure fits with ${n} keys at ${p}`, { limit: 60 }, async (page) => {
      await answerJobs(page);
      const sizesOf = n === 1e9 ? "10,1000000,1000000000" : String(n);
      const settings = { "analysis.n": n, "analysis.p": p, "benchmark.sizes": sizesOf, "profile.n": sizesOf };
      await open(page, `/#measure?${new URLSearchParams(settings)}`);
      const starts = page.getByRole("button", { name: t("measure.start"), exact: true });
      await starts.first().waitFor();
      await page.locator("figure svg").first().waitFor();
      await fits(page, `measure before, ${n}, ${p}`);
      for (const start of await starts.all()) await start.click();
      await becomes(() => page.locator("figure svg[role=img]").count(), 3);
      await fits(page, `measure, ${n}, ${p}`);
      await page.getByLabel(t("measure.scale.log")).check();
      await fits(page, `measure on a log scale, ${n}, ${p}`);
    });
  }
}

// ---- Inspect ----

const inspected = {
  "10 keys": inspection(10),
  "10^6 keys": inspection(1e6),
  "10^6 blocks": inspection(4e7, { blocks: 1e6 }),
  "10^9 keys": inspection(1e9),
  "10^9 keys, tiny FPR": inspection(1e9, { promised: 1e-9, certified: 1.234e-9, predicted: 1.1e-9 }),
  "far too full": inspection(1e6, {
    promised: 1e-6,
    certified: 0.9876,
    verdict: { level: "bad", code: "broken", text: "" },
  }),
  "10 keys on servers": sharded(10),
  "10^9 keys on servers": sharded(1e9),
};
for (const [name, seen] of Object.entries(inspected)) {
  test(`Inspect fits: ${name}`, { limit: 60 }, async (page) => {
    await answerInspections(page, seen);
    await open(page, "/#inspect/0");
    await page.locator("canvas").first().waitFor();
    await becomes(() => page.locator("figure .plot svg").count(), (seen.forecast ? 2 : 1) + 3); // three of the last hour
    for (const details of await page.locator("details > summary").all()) await details.click();
    await fits(page, `inspect, ${name}`);
  });
}
