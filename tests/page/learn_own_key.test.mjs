// The key that the reader types in chapter 1 returns in later chapters, whose claims are compared with the command.
import assert from "node:assert/strict";
import fs from "node:fs";
import { becomes, gone, noSeriousFindings, noSidewaysScrolling, numberOf, playground } from "./browser.mjs";
import { bits, last, Reader } from "./learn_view.mjs";

const { test, command } = playground();
const source = (file) => new URL(`../../${file}`, import.meta.url);

/** The cities that chapter 4 adds, in order, from the page's source. */
const capitals = [
  ...fs.readFileSync(source("playground/page/src/learn/capitals.ts"), "utf8").matchAll(/"(\p{L}[^"]*)"\./gu),
].flatMap(([, names]) => names.split(" "));

/** Builds a filter, also with more keys than its capacity, which the status reports. */
const builtWith = (options, input) =>
  command("build", "-q", "-o", ...options, { input }).catch((e) => assert.equal(e.code, 3));

/** What the command says about a key; its exit status is that of grep. */
const explained = async (file, key) =>
  JSON.parse(await command("explain", "--json", file, key).catch((e) => e.stdout)).keys[0];

/** The first addresses of a seed, as app/addresses.hpp describes them. */
function addresses(seed, count) {
  const text = fs.readFileSync(source("app/addresses.hpp"), "utf8");
  const list = (name) =>
    [...new RegExp(`> ${name} = \\{([^}]*)\\}`).exec(text)[1].matchAll(/"([^"]+)"/g)].map((m) => m[1]);
  const [names, surnames, hosts] = ["names", "surnames", "hosts"].map(list);
  const mix = (n) => {
    let x = BigInt.asUintN(64, n);
    x ^= x >> 27n;
    x = BigInt.asUintN(64, x * 0x3c79ac492ba7b653n);
    x ^= x >> 33n;
    x = BigInt.asUintN(64, x * 0x1c69b3f74ac4ae35n);
    return x ^ (x >> 27n);
  };
  return Array.from({ length: count }, (_, i) => {
    const chance = mix(BigInt(i) ^ mix(seed + 0x9e3779b97f4a7c15n));
    const pick = (words, shift) => words[Number((chance >> shift) % BigInt(words.length))];
    return `${pick(names, 59n)}.${pick(surnames, 54n)}${i}@${pick(hosts, 50n)}\n`;
  });
}

/** Whether the tutorial's filter with these keys says maybe to a key, and the key's bits, by the command. */
async function tutorialFilter(keys, key) {
  const lines = keys.map((one) => `${one}\n`).join("");
  await builtWith(["own.bloom", "--scheme", "pharo", "-n", "10", "-p", "10%"], lines);
  const { maybe_present: maybe, bits } = await explained("own.bloom", key);
  // The tutorial numbers bits from 1, the file from the last bit of each byte.
  return { maybe, bits: bits.map(({ bit }) => 8 * Math.floor(bit / 8) + 8 - (bit % 8)) };
}

/** Looks up a key in the field of chapter 1. */
async function typeOwnKey(r, key) {
  await r.page.goto("/#learn/1");
  await r.button("learn.ask", { key: "Madrid" }).waitFor();
  await r.page.locator("#own").fill(key);
  await r.page.keyboard.press("Enter");
  await becomes(() => r.said().innerText(), new RegExp(key));
}

for (const key of ["Grace Hopper", "Kyiv", ""]) {
  const who = key || "a reader who typed none";
  test(`Chapter 4 turns the reader's key into a false positive: ${who}`, { limit: 120 }, async (page) => {
    const r = new Reader(page, "en", false);
    if (key) await typeOwnKey(r, key);
    const victim = key || "Berlin";
    await page.goto("/#learn/3");
    await r.button("learn.ask", { key: "Madrid" }).waitFor();
    if (key) {
      await r.press(r.button("learn.ask", { key }));
      const { bits: own } = await tutorialFilter(["Madrid", "Barcelona"], key);
      const unset = own.filter((bit) => ![...bits.Madrid, ...bits.Barcelona].includes(bit));
      await r.hears("learn.said.no", { key, unset: unset.join(r.and) });
    }
    await page.goto("/#learn/4");
    await r.press(r.button("learn.4.until", { key: victim }));

    const told = await r.learns("learn.4.until.said");
    const added = ["Madrid", "Barcelona", ...capitals.filter((city) => city !== key).slice(0, told.count)];
    assert.equal(told.city, added.at(-1));
    assert.equal((await tutorialFilter(added.slice(0, -1), victim)).maybe, false, "one city earlier");
    const { maybe, bits: own } = await tutorialFilter(added, victim);
    assert.equal(maybe, true);
    assert.deepEqual(told.cells.split(r.and).map(Number), own);
    const owners = new Set();
    for (const bit of own) {
      for (const city of added) {
        if (!(await tutorialFilter(added.slice(0, 2), city)).bits.includes(bit)) continue;
        owners.add(city);
        break;
      }
    }
    assert.deepEqual(told.owners.split(r.and), [...owners]);
    await noSeriousFindings(page);
  });
}

test("Chapter 7 tells when the reader's key became a false positive", { limit: 90 }, async (page) => {
  const r = new Reader(page, "en", false);
  await typeOwnKey(r, "Grace Hopper");
  await page.goto("/#learn/7");
  const own = page.locator("article .own");
  await r.press(r.button("learn.7.add", { count: 150 }));
  const few = await r.learns("learn.7.own.no", own);
  await r.press(r.button("learn.7.until", { key: "Grace Hopper" }));
  const { from, to, fill, k } = await r.learns("learn.7.own.maybe", own, 60);

  assert.deepEqual([few.k, k], ["7", "7"]);
  assert(Number(few.set) < 7);
  const added = addresses(7n, numberOf(to));
  for (const keys of [from, to]) {
    await builtWith(
      ["f.bloom", "--layout", "classic", "-m", "9595", "-k", "7", "-n", "1000"],
      added.slice(0, numberOf(keys)).join(""),
    );
    const { maybe_present: maybe } = await explained("f.bloom", "Grace Hopper");
    assert.equal(maybe, keys === to, `with ${keys} keys`);
  }
  const share = JSON.parse(await command("info", "--json", "f.bloom")).fill;
  assert(Math.abs(numberOf(fill) / share - 1) < 0.006, `${fill}, by the command ${share}`);
  const [, ...rows] = await r.chart();
  await becomes(async () => (await r.chart()).at(-1)[0], String(numberOf(to)));
  assert(rows.length > 2);
  await r.press(r.button("learn.reset"));
  await gone(own);
});

test(
  "The reader's key stays in the browser, fits on a phone, and is on the last card",
  { width: 320 },
  async (page) => {
    const r = new Reader(page, "en", false);
    const key = `<i>${"W".repeat(60)}</i>`;
    await page.goto(`/#learn/${last}`);
    await page.getByText(r.t("learn.card.end")).waitFor();
    await page.goto("/#learn/1");
    const field = page.getByLabel(r.t("learn.million.name"));
    await field.fill(key);
    await field.press("Enter");
    await becomes(() => page.evaluate(() => localStorage.getItem("learn.key")), key);

    await page.reload();
    const brief = `${key.slice(0, 30)}…`;
    for (const [chapter, there] of [
      [1, r.button("learn.ask", { key: brief })],
      [3, r.button("learn.ask", { key: brief })],
      [4, r.button("learn.4.until", { key: brief })],
      [7, r.button("learn.7.until", { key: brief })],
      [last, page.getByText(r.t("learn.card.own", { key }))],
    ]) {
      await page.goto(`/#learn/${chapter}`);
      await there.waitFor();
      await noSidewaysScrolling(page);
    }
  },
);
