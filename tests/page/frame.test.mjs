// The frame of the page: header, typeface, colors, languages, projector mode, and small windows.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import {
  becomes,
  eventually,
  focused,
  follow,
  hold,
  noSeriousFindings,
  noSidewaysScrolling,
  playground,
  tabTo,
  words,
} from "./browser.mjs";

const { test, url } = playground({
  async filters(_folder, command) {
    const input = Array.from({ length: 900 }, (_, i) => `https://example.org/${i}\n`).join("");
    await command("build", "-n", "1000", "-o", "a-filter-with-a-rather-long-name.bloom", { input });
    return ["a-filter-with-a-rather-long-name.bloom"];
  },
});
const last = 13;
const article = (page) => page.locator("article");

/** Presses a button of the page by the name of its text. */
const press = (page, t, name, values) =>
  page
    .getByRole("button", { name: t(name, values), exact: true })
    .first()
    .click();

/** Marks all chapters as done, so that each shows all its parts. */
async function allDone(page) {
  await page.addInitScript((n) => {
    localStorage.setItem("learn.done", JSON.stringify(Array.from({ length: n }, (_, i) => i + 1)));
  }, last);
}

// ---- small windows --------------------------------------------------------------------------------------------------

for (const width of [320, 360]) {
  for (const language of ["en", "zh"]) {
    test(`The header is one row at ${width} px: ${language}`, { width, language }, async (page) => {
      const t = words(language);
      for (const view of ["learn", "play", "measure", "inspect"]) {
        await page.goto(`/#${view}`);
        await page.getByRole("link", { name: t(`nav.${view}`), exact: true, includeHidden: false }).waitFor();
        const boxes = await page
          .locator("header :is(a, button)")
          .evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).filter((box) => box.width > 0));
        assert.equal(boxes.length, 7, "the name, four views, the language and the theme");
        const middles = boxes.map((box) => box.top + box.height / 2);
        assert(Math.max(...middles) - Math.min(...middles) < 4, `${middles}`);
        for (const [i, box] of boxes.entries()) {
          assert(box.left >= 0 && box.right <= width, `${box.left} to ${box.right}`);
          assert(box.width >= 24 && box.height >= 24, "large enough for a finger");
          if (i > 0) assert(box.left >= boxes[i - 1].right - 0.5, "beside each other");
        }
        assert((await page.locator("header").boundingBox()).height < 56);
      }
    });
  }
}

for (const language of ["en", "zh"]) {
  test(
    `Nothing scrolls sideways at 320 px in ${language}, in any chapter, view and theme`,
    { width: 320, height: 640, language, limit: 90 },
    async (page) => {
      const t = words(language);
      await allDone(page);
      const places = [
        ...Array.from({ length: last }, (_, i) => `learn/${i + 1}`),
        "play?scheme=pharo&capacity=10&rate=0.1&keys=Madrid,Barcelona",
        "play?capacity=100&grows=1",
        "measure",
        "inspect/0",
      ];
      for (const place of places) {
        await page.goto(`/#${place}`);
        const [view, part] = place.split(/[/?]/);
        const ready =
          view === "learn" ? page.getByText(t(`learn.${part}.rule`)) : page.locator("main :is(canvas, svg)");
        await ready.first().waitFor();
        await pause(100);
        for (let theme = 0; theme < 2; ++theme) {
          await noSidewaysScrolling(page);
          await page.getByRole("button", { name: t("nav.theme.label") }).click();
        }
      }
    },
  );
}

/** The place of a bit of the first or second picture in the window, from the data of its canvas. */
async function boxOf(page, number, nth = 0) {
  return page
    .locator(".bits canvas")
    .nth(nth)
    .evaluate((canvas, cell) => {
      const { size, columns, left } = canvas.dataset;
      const box = canvas.getBoundingClientRect();
      const top = box.top + Math.floor(cell / columns) * size;
      return { top, bottom: top + Number(size), left: box.left + Number(left) + (cell % columns) * size };
    }, number - 1);
}

for (const [width, height] of [
  [320, 568],
  [360, 740],
]) {
  test(`On a phone of ${width} x ${height} px, the bit that decides is in view`, { width, height }, async (page) => {
    const t = words("en");
    const cases = [
      [1, ["learn.ask", { key: "Madrid" }], [18, 9, 48, 39]],
      [2, ["learn.add", { key: "Barcelona" }], [48, 42, 36, 30]],
      [3, ["learn.ask", { key: "Berlin" }], [27, 33]],
      [4, ["learn.ask", { key: "Roma" }], [36]],
      [5, ["learn.5.force", {}], [48]],
    ];
    for (const [chapter, [name, values], bits] of cases) {
      await page.goto(`/#learn/${chapter}`);
      await page.locator(".bits canvas[data-size]").first().waitFor();
      await page.evaluate(() => scrollTo(0, 0));
      await press(page, t, name, values);
      await eventually(async () => {
        for (const bit of bits) {
          const { top, bottom } = await boxOf(page, bit);
          assert(top >= 0 && bottom <= height, `chapter ${chapter}: bit ${bit} is at ${top} to ${bottom}`);
        }
        const said = await article(page).locator(".said").first().boundingBox();
        assert(height < 600 || (said.y >= 0 && said.y + said.height <= height), "the answer, too");
      });
    }
  });
}

test("The bits and the text begin at the same edge and the bits fill a whole number of bytes", async (page) => {
  for (const [width, columns] of [
    [1440, 16],
    [820, 16],
    [400, 8],
    [360, 7],
  ]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/#learn/4");
    await eventually(async () => {
      const { left } = await boxOf(page, 1);
      const text = await page.locator("h1").boundingBox();
      assert.equal(left, text.x, `at ${width} px`);
      assert.equal(Number(await page.locator(".bits canvas").getAttribute("data-columns")), columns);
    });
  }
});

// ---- typeface -------------------------------------------------------------------------------------------------------

/** The responses for fonts. */
function fontsOf(page) {
  const fonts = [];
  page.on("response", (one) => /\.woff2?$/.test(new URL(one.url()).pathname) && fonts.push(one));
  return fonts;
}

test("The page has a typeface of its own, from its own host, small, and with a license", async (page) => {
  const fonts = fontsOf(page);
  await page.goto("/#learn/4");
  await page.locator("h1").waitFor();
  await page.evaluate(() => document.fonts.ready);
  assert.equal(fonts.length, 1, "one file, requested once");
  assert.equal(new URL(fonts[0].url()).origin, url());
  assert.equal(fonts[0].status(), 200);
  const bytes = await fonts[0].body();
  assert.equal(bytes.subarray(0, 4).toString(), "wOF2");
  assert(bytes.length < 30_000, `${bytes.length} bytes`);
  assert(await page.evaluate(() => document.fonts.check("16px 'Source Sans 3'")));
  // A font that is used has other widths than its fallback.
  const widths = await page.evaluate(() => {
    const pen = document.createElement("canvas").getContext("2d");
    const width = (font) => ((pen.font = `40px ${font}`), pen.measureText("Why was the filter wrong?").width);
    return [
      width(getComputedStyle(document.querySelector("h1")).fontFamily),
      width("'Source Sans 3'"),
      width("monospace"),
    ];
  });
  assert.equal(widths[0], widths[1]);
  assert.notEqual(widths[0], widths[2]);
  const digits = await page.evaluate(() => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "40px 'Source Sans 3'";
    return [..."0123456789"].map((digit) => pen.measureText(digit).width);
  });
  assert.equal(new Set(digits).size, 1, "digits stand below each other");
  const licenses = await page.evaluate(async () => (await fetch("licenses.txt")).text());
  assert.match(licenses, /@fontsource-variable\/source-sans-3 [\d.]+\n\n[^]*?SIL OPEN FONT LICENSE Version 1\.1/);
});

test("Nothing moves when the typeface arrives", async (page) => {
  const font = await hold(page, "**/*.woff2");
  await page.goto("/#learn/4", { waitUntil: "commit" });
  await page.getByRole("button", { name: words("en")("learn.ask", { key: "Roma" }) }).waitFor();
  await font.came;
  await pause(300);
  await page.evaluate(() => {
    globalThis.shifted = 0;
    new PerformanceObserver((list) => {
      for (const one of list.getEntries()) globalThis.shifted += one.value;
    }).observe({ type: "layout-shift" });
  });
  const layout = () =>
    page.evaluate(() =>
      [...document.querySelectorAll("article > *, h1")].map((one) => one.getBoundingClientRect().top),
    );
  const before = await layout();
  assert(!(await page.evaluate(() => document.fonts.check("16px 'Source Sans 3'"))));
  font.go((route) => route.fallback());
  await becomes(() => page.evaluate(() => document.fonts.check("16px 'Source Sans 3'")), true);
  await pause(300);
  assert.deepEqual(await layout(), before);
  assert((await page.evaluate(() => globalThis.shifted)) < 0.001);
});

for (const [width, height] of [
  [1280, 800],
  [360, 740],
]) {
  test(`Nothing moves while a chapter is loaded: ${width} x ${height}`, { width, height }, async (page) => {
    await page.addInitScript(() => {
      globalThis.shifted = 0;
      new PerformanceObserver((list) => {
        for (const one of list.getEntries()) globalThis.shifted += one.value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    for (const chapter of [1, 4]) {
      await page.goto("about:blank");
      await page.goto(`/#learn/${chapter}`);
      await page.locator(".bits canvas[data-size]").waitFor();
      await pause(500);
      assert.equal(await page.evaluate(() => globalThis.shifted), 0, `chapter ${chapter}`);
    }
  });
}

test("Chinese text has the quotation marks of its own font", { language: "zh" }, async (page) => {
  await page.goto("/#learn/4");
  await page.locator("h1").waitFor();
  const ranges = await page.evaluate(() => {
    const family = getComputedStyle(document.querySelector("h1")).fontFamily.split(",")[0].replaceAll('"', "").trim();
    return [...document.fonts]
      .filter((one) => one.family.replaceAll('"', "") === family)
      .map((one) => one.unicodeRange);
  });
  assert.equal(ranges.length, 1);
  const covers = (letter) =>
    ranges[0].split(",").some((range) => {
      const [from, to = from] = range
        .trim()
        .slice(2)
        .split("-")
        .map((hex) => parseInt(hex, 16));
      return letter.codePointAt(0) >= from && letter.codePointAt(0) <= to;
    });
  for (const letter of "Madrid 1,000%") assert(covers(letter), letter);
  for (const letter of "“”‘’…—·") assert(!covers(letter), letter);
});

// ---- colors ---------------------------------------------------------------------------------------------------------

const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const light = (color) => color.map(linear);
const luminance = (color) => light(color).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
function contrast(a, b) {
  const [more, less] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (more + 0.05) / (less + 0.05);
}

// Machado, Oliveira & Fernandes 2009, "A Physiologically-based Model for Simulation of Color Vision Deficiency", for
// readers who lack one kind of cones entirely; in linear light.
const sights = {
  usual: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
};

/** The distance of two colors in CIELAB, as a reader sees them; about 2 is the least that is seen side by side. */
function distance(a, b, sight) {
  const lab = (color) => {
    const seen = [0, 1, 2].map((row) =>
      Math.min(
        1,
        Math.max(
          0,
          light(color).reduce((sum, c, i) => sum + c * sight[3 * row + i], 0),
        ),
      ),
    );
    const to = (weights, white) => seen.reduce((sum, c, i) => sum + c * weights[i], 0) / white;
    const f = (x) => (x > 0.008856 ? Math.cbrt(x) : 7.787 * x + 16 / 116);
    const x = f(to([0.4124, 0.3576, 0.1805], 0.9505));
    const y = f(to([0.2126, 0.7152, 0.0722], 1));
    const z = f(to([0.0193, 0.1192, 0.9505], 1.089));
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
  };
  const [p, q] = [lab(a), lab(b)];
  return Math.hypot(...p.map((one, i) => one - q[i]));
}

for (const dark of [false, true]) {
  for (const projector of [false, true]) {
    const name = `${dark ? "dark" : "light"}${projector ? ", projector" : ""}`;
    test(`Text and states can be told apart by everyone: ${name}`, { dark }, async (page) => {
      await page.goto(`/#learn/1${projector ? "?projector" : ""}`);
      await page.locator("h1").waitFor();
      const names = "ground raised text quiet accent on-accent maybe bad unset fresh line".split(" ");
      const colors = await page.evaluate((all) => {
        const style = getComputedStyle(document.documentElement);
        const of = (name) => style.getPropertyValue(`--${name}`).trim();
        return Object.fromEntries(
          all.map((name) => [name, [1, 3, 5].map((i) => parseInt(of(name).slice(i, i + 2), 16) / 255)]),
        );
      }, names);
      const is = (a, b, least) => {
        const found = contrast(colors[a], colors[b]);
        assert(found >= least, `${a} on ${b}: ${found.toFixed(2)}`);
      };
      for (const text of ["text", "quiet", "accent", "maybe", "bad"])
        for (const on of ["ground", "raised"]) is(text, on, 4.5);
      is("on-accent", "accent", 4.5);
      for (const one of ["maybe", "bad"]) is("ground", one, 4.5); // signs on a colored disk
      is("text", "unset", 4.5); // the number of a bit
      for (const one of ["accent", "maybe", "bad", "quiet"]) is(one, "unset", 3);
      is("fresh", "accent", 2.9); // the frame of a bit that was newly set, within the bit
      for (const [kind, sight] of Object.entries(sights)) {
        for (const [a, b] of [
          ["accent", "maybe"],
          ["accent", "bad"],
          ["maybe", "bad"],
          ["accent", "unset"],
        ]) {
          const apart = distance(colors[a], colors[b], sight);
          assert(apart > 20, `${a} and ${b} with ${kind}: ${apart.toFixed(1)}`);
        }
      }
    });
  }
}

// ---- languages ------------------------------------------------------------------------------------------------------

for (const [language, other] of [
  ["en", "zh"],
  ["zh", "en"],
]) {
  test(
    `Only the texts of the reader's language are loaded, and nothing is shown before: ${language}`,
    { language },
    async (page) => {
      const t = words(language);
      const tables = new Set();
      page.on("request", (one) => {
        const found = /\/(en|zh)-[^/]*\.js$/.exec(one.url());
        if (found) tables.add(found[1]);
      });
      const table = await hold(page, new RegExp(`/${language}-[^/]*\\.js$`));
      await page.goto("/#learn/4");
      await table.came;
      assert.equal(await page.getAttribute("html", "lang"), language === "zh" ? "zh-Hans" : "en");
      assert.equal(await page.locator("body").innerText(), "");
      table.go((route) => route.fallback());
      await becomes(page.locator("h1"), t("learn.4.ask"));
      assert.deepEqual([...tables], [language]);

      // The page keeps its language and what it shows until the other texts are there.
      await press(page, t, "learn.ask", { key: "Roma" });
      await page.locator("#own").fill("a key that is not lost");
      const next = await hold(page, new RegExp(`/${other}-[^/]*\\.js$`));
      await page.getByRole("button", { name: t("nav.language.label") }).click();
      await next.came;
      assert.equal(await page.locator("h1").innerText(), t("learn.4.ask"));
      next.go((route) => route.fallback());
      await becomes(page.locator("h1"), words(other)("learn.4.ask"));
      assert.equal(await page.getAttribute("html", "lang"), other === "zh" ? "zh-Hans" : "en");
      assert.equal(await page.locator("#own").inputValue(), "a key that is not lost");
      await page.getByText(words(other)("learn.4.rule")).waitFor();
    },
  );
}

test(
  "A language that cannot be loaded at first is loaded later",
  { expects: [/ERR_CONNECTION_REFUSED/] },
  async (page) => {
    const [en, zh] = [words("en"), words("zh")];
    await page.goto("/#learn/2");
    await page.locator("h1").waitFor();
    await page.route(/\/zh-[^/]*\.js$/, (route) => route.abort("connectionrefused"), { times: 1 });
    await page.getByRole("button", { name: en("nav.language.label") }).click();
    await becomes(page.locator("h1"), zh("learn.2.ask"));
  },
);

// ---- numbers --------------------------------------------------------------------------------------------------------

test("Numbers are written as English readers write them: 1,000,000, 5%, 64 KiB", { limit: 60 }, async (page) => {
  await allDone(page);
  const places = [
    ...Array.from({ length: last }, (_, i) => `learn/${i + 1}`),
    "play?capacity=1000000&rate=0.01",
    "measure",
    "inspect/0",
  ];
  for (const place of places) {
    await page.goto(`/#${place}`);
    const [view, part] = place.split(/[/?]/);
    const ready =
      view === "learn" ? page.getByText(words("en")(`learn.${part}.rule`)) : page.locator("main :is(canvas, svg)");
    await ready.first().waitFor();
    const told = await page.evaluate(() => {
      const fields = [...document.querySelectorAll("main input:not([type=range])")];
      const shown = fields.flatMap((one) => [one.value, one.placeholder]);
      const copy = document.querySelector("main").cloneNode(true);
      for (const one of copy.querySelectorAll("code, details, style, .chain")) one.remove();
      return [...copy.querySelectorAll("*")]
        .flatMap((one) => [...one.childNodes])
        .filter((one) => one.nodeType === Node.TEXT_NODE)
        .map((one) => one.textContent)
        .concat(shown);
    });
    assert(told.some((text) => /\d/.test(text)));
    for (const text of told) assert.doesNotMatch(text, /\d{5}|\d\s%|\d(B|[KMG]i?B|ms|s)\b/, `${place}: ${text}`);
  }
});

test("A number in a field may be edited as it is shown", { expects: [/status of 400/] }, async (page) => {
  const t = words("en");
  await page.goto("/#measure");
  const keys = page.locator("section").first().getByLabel(t("play.capacity"));
  await becomes(() => keys.inputValue(), "1,000");
  await keys.press("End");
  await page.keyboard.type("0");
  assert.equal(await keys.inputValue(), "1,0000");
  await becomes(() => page.url(), /capacity=10000(&|$)/);
  assert.equal(await keys.getAttribute("aria-invalid"), "false");
  await keys.press("Tab");
  assert.equal(await keys.inputValue(), "10,000");
  await keys.fill("1,5");
  await becomes(() => keys.getAttribute("aria-invalid"), "true");
  await keys.fill("2,000");
  await becomes(() => page.url(), /capacity=2000(&|$)/);
  const sizes = page.getByLabel(t("measure.sizes")).first();
  await sizes.fill("10; 1,000,00");
  await sizes.press("Enter");
  await page.getByText(t("measure.typed.none", { typed: "1,000,00" })).waitFor();
});

// ---- projector mode -------------------------------------------------------------------------------------------------

test("Projector mode has a button, a key and a link, and the browser remembers it", async (page) => {
  const t = words("en");
  const button = page.getByRole("button", { name: t("nav.projector.label") });
  const root = () => page.evaluate(() => parseFloat(getComputedStyle(document.documentElement).fontSize));
  const is = async (on) => {
    await page.locator("h1").waitFor(); // everything is loaded
    await becomes(() => button.getAttribute("aria-pressed"), String(on));
    await becomes(() => article(page).locator(".intro").isVisible(), !on);
    await becomes(() => page.locator("footer").isVisible(), !on);
  };
  await page.goto("/#learn/3");
  await is(false);
  const usual = await root();
  await tabTo(page, button);
  await page.keyboard.press("Enter");
  await is(true);
  assert((await root()) > 1.25 * usual);
  await focused(button);
  await noSeriousFindings(page);
  await page.keyboard.press("Alt+KeyP");
  await is(false);
  await page.keyboard.press("Alt+KeyP");
  await page.reload();
  await is(true);
  await button.click();
  await page.reload();
  await is(false);
  const open = async (place) => {
    await page.goto("about:blank");
    await page.goto(place);
  };
  await open("/#learn/4?projector");
  await becomes(page.locator("h1"), t("learn.4.ask"));
  await is(true);
  await page.keyboard.press("ArrowRight"); // the lecturer goes on
  await becomes(page.locator("h1"), t("learn.5.ask"));
  await is(true);
  await open("/#learn/4?projector=off");
  await is(false);
  await follow(page, t("nav.play"));
  await page.locator(".bits canvas").waitFor();
  await page.keyboard.press("Alt+KeyP");
  await becomes(() => button.getAttribute("aria-pressed"), "true");
  await page.locator(".bits canvas").waitFor();
});

/** What a lecturer does in each chapter, and where the answer and the picture appear. */
const lectures = {
  1: [["learn.ask", { key: "Madrid" }], ".said", ".bits canvas"],
  2: [["learn.add", { key: "Barcelona" }], ".said", ".bits canvas"],
  3: [["learn.ask", { key: "Berlin" }], ".said", ".bits canvas"],
  4: [["learn.ask", { key: "Roma" }], ".said", ".bits canvas"],
  5: [["learn.5.force", {}], ".said >> nth=0", ".bits canvas"],
  6: [undefined, ".big", "figure svg"],
  7: [["learn.7.add", { count: 150 }], ".said", "figure svg"],
  8: [undefined, "figcaption >> nth=0", "figure svg"],
  9: [["learn.ask", { key: "Madrid" }], "[role=status]:not(:empty) >> nth=1", ".lines"],
  10: [["learn.10.add", { count: 500 }], ".said", ".bar"],
  11: [["learn.11.tick", {}], ".said", "ol"],
  13: [["learn.13.engine", {}], "p[aria-live]", "svg"],
};

for (const language of ["en", "zh"]) {
  test(
    `On a projector of 1280 x 720, each chapter is one screen: ${language}`,
    { width: 1280, height: 720, language, limit: 90 },
    async (page) => {
      const t = words(language);
      for (const [chapter, [action, answer, picture]] of Object.entries(lectures)) {
        await page.goto(`/#learn/${chapter}?projector`);
        await becomes(page.locator("h1"), t(`learn.${chapter}.ask`));
        const parts = {
          question: page.locator("h1"),
          exercise: article(page).locator(".do"),
          answer: article(page).locator(answer),
          picture: article(page).locator(picture).first(),
        };
        if (action) await press(page, t, ...action);
        await parts.picture.waitFor();
        await pause(700); // let it scroll, if it would
        await eventually(async () => {
          for (const [name, part] of Object.entries(parts)) {
            const box = await part.boundingBox();
            assert(
              box.height > 0 && box.y >= 0 && box.y + box.height <= 720,
              `chapter ${chapter}, ${name}: ${JSON.stringify(box)}`,
            );
          }
          if (action) assert.notEqual((await parts.answer.innerText()).trim(), "");
        });
        await noSidewaysScrolling(page);
      }
    },
  );
}
