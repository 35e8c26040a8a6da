// The page as static files inspects a file of the reader: it reads the file in slices, so that also a large one takes
// little memory, and finds what the command finds.
//
// Environment: BLOOMERY_SITE, the folder of the page; build/site
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test as nodeTest } from "node:test";
import { becomes, eventually, gone, inFirefox, playground, source, words } from "./browser.mjs";
import { fileOf } from "./play_view.mjs";
import { moduleOf } from "./site_module.mjs";

const site = path.resolve(process.env.BLOOMERY_SITE ?? path.join(source, "build/site"));
if (!fs.existsSync(site)) {
  console.log(`SKIP: there is no ${site}: run make page`);
  process.exit(77);
}
const { test, command, folder } = playground({ site });
const en = words("en");
const at = (name) => path.join(folder, name);

test("A filter file of the reader is inspected, again after a change, and others are refused", async (page) => {
  await command("build", "-o", "seen.bloom", "-n", "1000", "-p", "1%", { input: "alice\nbob\n" });
  await page.goto("/#inspect");
  const choose = page.getByLabel(en("inspect.own.choose"));
  await choose.setInputFiles(fileOf("notes.txt", "no filter"));
  await becomes(page.getByRole("alert"), /^notes\.txt: not a bloomery/);
  await choose.setInputFiles(at("seen.bloom"));
  await page.getByRole("heading", { name: "seen.bloom" }).waitFor();
  await gone(page.getByRole("alert"));
  const keys = () => page.locator("main").innerText();
  await becomes(keys, /\b2\b/);
  const facts = JSON.parse(await command("info", "--json", "seen.bloom"));
  await becomes(keys, new RegExp(facts.bits.toLocaleString("en-US")));
  await command("add", "seen.bloom", { input: Array.from({ length: 700 }, (_, i) => `key ${i}\n`).join("") });
  await choose.setInputFiles(at("seen.bloom"));
  const more = JSON.parse(await command("info", "--json", "seen.bloom"));
  await becomes(keys, new RegExp(`${(100 * more.fill).toFixed(1)}%`));
  fs.truncateSync(at("seen.bloom"), 5000);
  await choose.setInputFiles(at("seen.bloom"));
  await eventually(async () => assert.match(await keys(), /5,000|shorter|damaged/));
});

/** Writes a filter of each kind that has slots, packed cells or two levels. Its name, and the options of the command. */
async function kindsOfFilters() {
  const lines = (first, count) => Array.from({ length: count }, (_, i) => `key ${first + i}\n`).join("");
  fs.writeFileSync(at("present"), lines(0, 3000));
  fs.writeFileSync(at("absent"), lines(3000, 50_000));
  const made = [];
  for (const [name, ...options] of [
    ["quotient", "build", "--quotient", "-n", "3000"],
    ["doubling", "build", "--quotient", "--grow", "-n", "40000"],
    ["packed", "seal", "--width", "7"],
    ["ribbon", "seal", "--ribbon", "--width", "9"],
    ["two_lists", "seal", "--never-for", "absent"],
  ]) {
    await command(...options, "-q", "-o", `${name}.bloom`, "present");
    made.push(`${name}.bloom`);
  }
  return made;
}

test("Quotient filters, packed static filters, ribbon filters and cascades are inspected", { journey: true }, async (page) => {
  await page.goto("/#inspect");
  for (const name of await kindsOfFilters()) {
    await page.getByLabel(en("inspect.own.choose")).setInputFiles(at(name));
    await page.getByRole("heading", { name }).waitFor();
    await becomes(() => page.locator("main").innerText(), /3,000/);
    const ask = page.getByRole("region", { name: en("inspect.ask.title") });
    await ask.getByRole("textbox").fill("key 2999");
    await page.keyboard.press("Enter");
    await becomes(ask.getByRole("status"), /^Maybe/);
    assert.equal(await page.getByRole("alert").count(), 0, name);
  }
});

test("A file that changes after it was chosen answers no keys, and says so", async (page) => {
  await command("build", "-o", "changes.bloom", "-n", "1000", "-p", "1%", { input: "alice\nbob\n" });
  await page.goto("/#inspect");
  await page.getByLabel(en("inspect.own.choose")).setInputFiles(at("changes.bloom"));
  await page.getByRole("heading", { name: "changes.bloom" }).waitFor();
  const ask = page.getByRole("region", { name: en("inspect.ask.title") });
  await ask.getByRole("textbox").fill("alice");
  await page.keyboard.press("Enter");
  await becomes(ask.getByRole("status"), /^Maybe/);
  await command("add", "changes.bloom", { input: "carol\n" });
  await ask.getByRole("textbox").fill("carol");
  await page.keyboard.press("Enter");
  await becomes(ask.getByRole("status"), /cannot read.*I\/O error/);
});

// ---- the module itself ----------------------------------------------------------------------------------------------

/** Overwrites a byte of the bits of a filter, which follow 4096 bytes of header. */
function damage(name) {
  const file = fs.openSync(name, "r+");
  fs.writeSync(file, "?", 4096 + Math.floor((fs.fstatSync(file).size - 4096) / 2));
  fs.closeSync(file);
}

nodeTest("The module finds in filters of these kinds what the command finds", { skip: inFirefox && "it needs no browser" }, async () => {
  const { inspect, handle } = await moduleOf();
  const asked = Array.from({ length: 100 }, (_, i) => `key ${2950 + i}`);
  for (const name of await kindsOfFilters()) {
    const { number } = JSON.parse(inspect(at(name)).body);
    const seen = JSON.parse(handle("GET", `/api/1/inspections/${number}`).body);
    const facts = JSON.parse(await command("info", "--json", name));
    assert.equal(seen.state, "ready", name);
    assert.equal(seen.filter.layout, facts.layout);
    assert.equal(seen.file_bytes, facts.file_bytes);
    assert(Math.abs(seen.certified - facts.rate_now) <= 1e-12 * facts.rate_now, `${name}: ${seen.certified}`);
    assert(seen.measured.low < facts.rate_now && facts.rate_now < seen.measured.high, `${name}: ${JSON.stringify(seen.measured)}`);
    const answers = handle("POST", `/api/1/inspections/${number}/ask`, JSON.stringify({ keys: asked }));
    const maybe = JSON.parse(answers.body).keys.filter((one) => one.answer === "maybe").map((one) => `${one.key}\n`);
    assert.equal(maybe.join(""), await command("check", name, "-", { input: `${asked.join("\n")}\n` }), name);
    damage(at(name));
    inspect(at(name));
    const after = JSON.parse(handle("GET", `/api/1/inspections/${number}`).body);
    assert.equal(after.verdict.code, "damaged", name);
  }
});

nodeTest("The module inspects 100 MiB in little memory, and finds what the command finds", { skip: inFirefox && "it needs no browser" }, async () => {
  const input = Array.from({ length: 1_500_000 }, (_, i) => `key ${i}\n`).join("");
  await command("build", "-o", "large.bloom", "-m", "100MiB", "-k", "2", "-n", "100M", "--layout", "classic", { input });
  const { inspect, handle, memory } = await moduleOf();
  const read = () => {
    const { number } = JSON.parse(inspect(at("large.bloom")).body);
    return JSON.parse(handle("GET", `/api/1/inspections/${number}`).body);
  };
  const asked = ["key 0", "key 1499999", ...Array.from({ length: 98 }, (_, i) => `absent ${i}`)];
  const ask = () => handle("POST", "/api/1/inspections/0/ask", JSON.stringify({ keys: asked }));

  const seen = read();
  const facts = JSON.parse(await command("info", "--json", "large.bloom"));
  const answers = JSON.parse(ask().body).keys.filter((one) => one.answer === "maybe");
  const maybe = await command("check", "large.bloom", "-", { input: `${asked.join("\n")}\n` });

  assert(memory() < 40 * 2 ** 20, `${memory()} bytes`);
  assert.equal(seen.state, "ready");
  assert.equal(seen.file_bytes, facts.file_bytes);
  assert.equal(seen.keys, facts.predicted_for_keys);
  assert.equal(seen.facts.ones, Math.round(facts.fill * facts.bits));
  assert.equal(seen.heat.ones.reduce((sum, one) => sum + one, 0), seen.facts.ones);
  for (const [one, other] of [
    [seen.certified, facts.rate_now],
    [seen.predicted, facts.predicted_rate],
  ]) assert(Math.abs(one - other) <= 1e-12 * other, `${one} and ${other}`);
  assert.equal(seen.measured.queries, 100_000);
  assert(seen.measured.low < facts.rate_now && facts.rate_now < seen.measured.high, JSON.stringify(seen.measured));
  assert.equal(seen.histogram.fits, true);
  assert.equal(seen.verdict.code, "keeps");
  assert.equal(answers.map((one) => `${one.key}\n`).join(""), maybe);

  damage(at("large.bloom"));
  assert.equal(read().verdict.code, "damaged");
  assert.equal(JSON.parse(ask().body).error.code, "damaged");
  assert(memory() < 40 * 2 ** 20, `${memory()} bytes`);
});
