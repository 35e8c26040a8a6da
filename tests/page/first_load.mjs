// Measures the time from navigation in a fresh browser to the first usable button of each view. Prints the times of
// three loads per view and the bytes transferred. It asserts nothing, because times depend on the machine.
//
//   $ BLOOMERY=build/release/bloomery node tests/page/first_load.mjs 2>/dev/null | grep ms
//   learn: first button after 212, 205, 208 ms; 52 kB in 5 answers
import { playground } from "./browser.mjs";

const { test } = playground();
const loads = 3;

for (const view of ["learn", "play", "measure"]) {
  const times = [];
  for (let i = 1; i <= loads; ++i) {
    test(`${view}, load ${i}`, async (page) => {
      await page.addInitScript(() => {
        const usable = "main :is(button, input, select):not(:disabled)";
        new MutationObserver(() => {
          if (document.querySelector(usable)) globalThis.usableAfter ??= performance.now();
        }).observe(document, { subtree: true, childList: true, attributes: true });
      });
      const answers = [];
      page.on("requestfinished", (one) => answers.push(one.sizes()));
      await page.goto(`/#${view}`);
      const after = await page.waitForFunction(() => globalThis.usableAfter);
      times.push(Math.round(await after.jsonValue()));
      if (i < loads) return;
      const sizes = await Promise.all(answers);
      const bytes = sizes.reduce((sum, one) => sum + one.responseBodySize, 0);
      console.log(
        `${view}: first button after ${times.join(", ")} ms; ${Math.round(bytes / 1000)} kB in ${sizes.length} answers`,
      );
    });
  }
}
