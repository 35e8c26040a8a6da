// Regenerates the screenshots in README.md, docs/images/{learn,play,inspect}.png, or only the named ones.
//
//   $ BLOOMERY=build/release/bloomery node tests/page/pictures.mjs learn
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { eventually, playground, source, words } from "./browser.mjs";

const t = words("en");
const folder = path.join(source, "docs/images");
const wanted = process.argv.slice(2);
const { test } = playground({
  async filters(_folder, command) {
    const input = Array.from({ length: 90_000 }, (_, i) => `https://example.org/${i}\n`).join("");
    await command("build", "-n", "100000", "-o", "seen.bloom", { input });
    return ["seen.bloom"];
  },
});

const scenes = {
  async learn(page) {
    await page.goto("/#learn/4");
    await page.getByRole("button", { name: t("learn.ask", { key: "Roma" }) }).click();
    await page.getByText(t("learn.4.rule")).waitFor();
  },
  async play(page) {
    await page.goto("/#play?scheme=pharo&capacity=10&rate=0.1&keys=Madrid,Barcelona");
    await page.getByLabel(t("key.label"), { exact: true }).fill("Roma");
    await page.getByRole("button", { name: t("key.ask"), exact: true }).click();
    await eventually(async () => assert.match(await page.locator("main").innerText(), /false positive/));
  },
  async inspect(page) {
    await page.goto("/#inspect/0");
    await page.locator("main svg").first().waitFor();
  },
};

for (const [name, scene] of Object.entries(scenes)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const height = name === "learn" ? 880 : 730; // the steps of hashing and the bits
  test(name, { width: 1200, height, context: { deviceScaleFactor: 0.7 } }, async (page) => {
    await scene(page);
    await page.evaluate(() => (document.activeElement?.blur(), scrollTo(0, 0)));
    await page.mouse.move(0, 0);
    await page.waitForTimeout(2500); // let animations end
    fs.mkdirSync(folder, { recursive: true });
    await page.screenshot({ path: path.join(folder, `${name}.png`) });
  });
}
