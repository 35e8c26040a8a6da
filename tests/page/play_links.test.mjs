// Links to filters, and the Play view with pending requests: the reader leaves and returns, and opens one link after
// another. The filters are in the page, so the program that served it may end.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { becomes, copied, disconnect, follow, playground, tasks, words } from "./browser.mjs";
import { cities, numbered, PlayView } from "./play_view.mjs";

const { test, folder } = playground();

const oslo = "/#play?layout=classic&capacity=10&bits=100&probes=3&keys=Oslo";
const clipboard = { context: { permissions: ["clipboard-read", "clipboard-write"] } };
const en = words("en");

async function toLearnAndBack(view, between = () => {}) {
  await follow(view.page, "Learn");
  await view.page.getByRole("heading", { name: "What does an empty filter know?" }).waitFor();
  await between();
  await follow(view.page, "Play");
  await view.key.waitFor();
}

// ---- links ----

const packed = (steps) => zlib.deflateRawSync(JSON.stringify(steps)).toString("base64url");
const stepsOf = (link) => JSON.parse(zlib.inflateRawSync(Buffer.from(/[?&]steps=([\w-]+)$/.exec(link)[1], "base64url")));

test("A link creates the same bits in another page", async (page, context) => {
  const view = new PlayView(page);
  const keys = ["a,b", "100%", "München & Söhne", "#?=+ /"];
  await view.open("/#play?layout=split_block512&capacity=50&rate=0.02&seed=7");
  for (const one of keys) await view.add(one);
  await view.linkIs(/keys=.*%23%3F%3D%2B\+%2F$/);
  const other = new PlayView(await context.newPage());

  await other.open(page.url());
  await other.holds(...keys);

  const [first, second] = [view, other].map((one, i) => [one, path.join(folder, `${i}.bloom`)]);
  for (const [one, file] of [first, second]) await one.download(file);
  assert.deepEqual(fs.readFileSync(second[1]), fs.readFileSync(first[1]));
});

test("A link holds many keys, addresses, removals and the clock", { limit: 60 }, async (page, context) => {
  const view = new PlayView(page);
  // The link has all steps up to the last, which is given.
  const same = async (last, makes, alike = true) => {
    await becomes(() => stepsOf(page.url()).at(-1), last);
    const other = new PlayView(await context.newPage());
    await other.open(page.url());
    const files = [view, other].map((one, i) => [one, path.join(folder, `steps-${i}.bloom`)]);
    for (const [one, file] of files) await one.download(file);
    if (alike) assert.deepEqual(fs.readFileSync(files[1][1]), fs.readFileSync(files[0][1]));
    await becomes(other.setBits, await view.setBits.innerText());
    await makes(other);
    await other.page.close();
  };
  await view.open("/#play?layout=counting&capacity=3000&rate=0.01");
  await view.paste(numbered(2000));
  await view.told(/Added 2,000 keys/);
  await view.addresses.fill("900");
  await view.press("Add random addresses");
  await view.told(/Added 900 keys/);
  await view.add("é <&");
  await view.key.fill("line 7");
  await view.press("Remove");
  await view.told(/Removed line 7/);
  await same({ remove: "line 7", by_force: false }, async (other) => {
    assert.equal(await other.ask("line 7"), "no");
    assert.equal(await other.ask("line 8"), "maybe");
    await other.undo(); // the steps are those of the first page
    assert.equal(await other.ask("line 7"), "maybe");
    // The next random addresses are not those of the link.
    await other.addresses.fill("50");
    await other.press("Add random addresses");
    await other.told(/Added 50 keys\. (50|49) of them were new/);
  });

  await page.goto("about:blank");
  await view.open("/#play?window_milliseconds=7000&capacity=100&rate=0.01");
  await view.add("old");
  for (const [seconds, told] of [
    ["7 s", /7 seconds/],
    ["1 s", /one second/i],
  ]) {
    await view.press(`Advance ${seconds}`);
    await view.told(told);
  }
  await view.add("new");
  await same({ keys: ["new"] }, async (other) => {
    assert.equal(await other.ask("old"), "no");
    assert.equal(await other.ask("new"), "maybe");
  }, false); // its clock begins later
});

test("A link whose keys cannot be read makes no filter, and too many keys are left out", { ...clipboard, limit: 60 }, async (page) => {
  const view = new PlayView(page);
  await view.open(oslo);
  for (const steps of ["7VhL", "AAAA", "%00", "qq", "4~"]) {
    await page.goto(`/#play?layout=classic&capacity=10&rate=0.1&steps=${steps}`);
    await view.shows(en("play.link.damaged"));
    await view.holds("Oslo");
  }
  await view.add("Bergen");
  await view.linkIs(/keys=Oslo%2CBergen$/);

  await page.goto("about:blank"); // otherwise the keys may arrive before the new filter
  await view.open("/#play?layout=split_block512&capacity=60000&rate=0.01");
  await view.add("first");
  await view.linkIs(/keys=first$/);
  await view.paste(numbered(40_000));
  await view.told(/Added 40,000 keys/);
  await view.linkIs(/rate=0.01&layout=split_block512$/);
  await view.press("Copy link");
  await view.shows(en("play.copy.large"));
});

test("A link can be copied, and one that cannot be opened leaves the previous filter", clipboard, async (page) => {
  const view = new PlayView(page);
  const broken = page.getByText("The link could not be opened. The page still shows the previous filter.");
  const copy = async () => {
    await view.press("Copy link");
    await page.getByText(en("play.copy.local")).waitFor();
    return copied(page);
  };
  await view.open(oslo);
  await view.holds("Oslo");
  await becomes(view.setBits, /^3 of 100/);
  await page.goto(cities);
  await view.holds("Madrid", "Barcelona");
  const link = await copy();
  assert.equal(link, page.url());
  assert.match(link, /#play\?capacity=10&rate=0\.1&scheme=pharo&keys=Madrid%2CBarcelona$/);
  await view.press("Copy command");
  await becomes(() => copied(page), "bloomery build -o filter.bloom --scheme pharo -n 10 -p 0.1 keys.txt");
  await view.press("Copy C++");
  await becomes(
    () => copied(page),
    'bloomery::any_filter filter(bloomery::complete({.scheme = "pharo", .capacity = 10, .target_fpr = 0.1}));',
  );

  await page.goto("/#play?layout=classic&capacity=1000000000&rate=0.01");
  await broken.waitFor();
  assert.equal(await copy(), link);
  await view.add("Paris");
  await becomes(() => page.url(), `${link}%2CParis`);
  await becomes(() => view.field("Keys (n)").inputValue(), "10");
  assert.equal(await broken.count(), 0);
});

test("A link with an unknown layout or scheme makes no other filter", async (page) => {
  const view = new PlayView(page);
  for (const [link, says, choice] of [
    ["layout=line&capacity=20&rate=0.05&keys=Oslo", /line/, "line"],
    ["scheme=java&capacity=20&rate=0.05&keys=Oslo", /java/, "java"],
    ["layout=sliding&capacity=20&rate=0.05&keys=Oslo", /window/, "sliding"],
    ["layout=classic&scheme=pharo&capacity=20&rate=0.05&keys=Oslo", /scheme/, "pharo"],
  ]) {
    await page.goto("about:blank");
    await page.goto(`/#play?${link}`);
    await becomes(page.getByRole("alert").first(), says);
    assert.equal(await view.layout.locator("option:checked").innerText(), choice);
    assert.equal(await view.bits.count(), 0);
    assert(page.url().endsWith(link));
  }
  // The reader's own choice makes a filter with the keys of the link.
  await view.layout.selectOption("classic");
  await view.holds("Oslo");

  await page.goto("/#play?layout=line&capacity=20&rate=0.05&keys=Rome");
  await view.shows("The link could not be opened. The page still shows the previous filter.");
  await view.holds("Oslo");
});

test("A link whose filter cannot be created passes no keys to the next link", async (page) => {
  const view = new PlayView(page);
  const steps = packed([{ keys: ["Rome"] }, { tick: 5 }]); // for a filter without a clock
  await page.goto(`/#play?layout=classic&capacity=10&rate=0.1&steps=${steps}`);
  await becomes(page.getByRole("alert").first(), /clock/);
  assert.equal(await view.bits.count(), 0);
  await page.goto(oslo);

  await view.holds("Oslo");
});

// ---- leaving the view ----

test("A filter that is created while the reader is away is there on return", async (page) => {
  const view = new PlayView(page);
  const { hold } = await tasks(page);
  await view.open(cities);
  await view.holds("Madrid", "Barcelona");
  await toLearnAndBack(view);
  await view.holds("Madrid", "Barcelona");

  for (const [capacity, arrives] of [
    ["100", "before"],
    ["200", "after"],
  ]) {
    await view.field("Keys (n)").fill(capacity);
    await view.button("Create filter").waitFor();
    const making = await hold(/^POST \/api\/1\/filters$/);
    await view.press("Create filter");
    await making.came();

    await toLearnAndBack(view, arrives === "before" ? making.go : undefined);
    if (arrives === "after") await making.go();

    await view.told(/2 keys carried over/);
    await view.holds("Madrid", "Barcelona");
    await view.linkIs(new RegExp(`capacity=${capacity}&.*keys=Madrid%2CBarcelona$`));
    assert.equal(await view.field("Keys (n)").inputValue(), capacity);
    assert.equal(await view.button("Create filter").count(), 0);
  }
});

for (const [first, request] of [
  ["/#play", /plans$/],
  ["", /plans$/],
  ["", /^POST \/api\/1\/filters$/],
]) {
  test(`A link is opened when the reader returns to it: ${first ? "second" : "first"} link, ${request}`, async (page) => {
    const view = new PlayView(page);
    const { hold } = await tasks(page);
    if (first) await view.open(first);
    const pending = await hold(request);
    await page.goto(cities);
    await pending.came();

    await toLearnAndBack(view);
    await pending.go();

    await view.holds("Madrid", "Barcelona");
    await view.linkIs(/scheme=pharo&.*keys=Madrid%2CBarcelona$/);
  });
}

test("A long paste continues in another view and can be stopped afterwards", { limit: 60 }, async (page) => {
  const view = new PlayView(page);
  const { hold } = await tasks(page);
  await view.open("/#play?layout=split_block512&capacity=600000&rate=0.01");
  const adding = await hold(/add$/);
  await view.paste(numbered(500_000));
  await adding.came();

  await toLearnAndBack(view);
  await view.press("Stop");
  await view.key.fill("alice");
  await view.key.press("Enter");
  await adding.go();

  await view.told(/Added alice/);
  assert.match((await view.story.allInnerTexts())[1], /^\+\s*Stopped after 100,000 keys/);
  for (let i = 0; i < 2; ++i) await view.undo();
  await becomes(view.setBits, /^0 of/);
});

test("The filter needs no program, and is in the address if the page has to be loaded again", { expects: [/ERR_|'in'.*null/] }, async (page) => {
  const view = new PlayView(page);
  const { fail } = await tasks(page);
  await view.open(cities);
  await page.locator("figure svg").waitFor(); // the library of charts is there, too
  const reconnect = await disconnect(page, "**/*");
  await view.add("Paris");
  await view.undo();
  await view.add("Oslo");
  await view.holds("Madrid", "Barcelona", "Oslo");
  await view.linkIs(/Oslo$/);
  await reconnect();

  await fail();
  await becomes(page.getByRole("alert"), new RegExp(en("nav.failed")));
  await view.press(en("nav.reload"));
  await view.holds("Madrid", "Barcelona", "Oslo");
});
