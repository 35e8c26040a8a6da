// Links to filters, and the Play view with pending requests: the reader leaves and returns, opens one link after
// another, and the server goes down and comes back.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { becomes, copied, disconnect, focused, follow, hold, playground } from "./browser.mjs";
import { cities, numbered, PlayView } from "./play_view.mjs";

const { test, folder } = playground();

const oslo = "/#play?layout=classic&capacity=10&bits=100&probes=3&keys=Oslo";
const clipboard = { journey: true, context: { permissions: ["clipboard-read", "clipboard-write"] } };
const outage = { expects: [/ERR_/] };

async function toLearnAndBack(view, between = () => {}) {
  await follow(view.page, "Learn");
  await view.page.getByRole("heading", { name: "What does an empty filter know?" }).waitFor();
  await between();
  await follow(view.page, "Play");
  await view.key.waitFor();
}

// ---- links ----

test("A link creates the same bits in another page", async (page, context) => {
  const view = new PlayView(page);
  const keys = ["a,b", "100%", "München & Söhne", "#?=+ /"];
  await view.open("/#play?layout=split_block512&capacity=50&rate=0.02&seed=7");
  for (const one of keys) await view.add(one);
  await view.linkIs(/keys=/);
  const other = new PlayView(await context.newPage());

  await other.open(page.url());
  await other.holds(...keys);

  const [first, second] = [view, other].map((one, i) => [one, path.join(folder, `${i}.bloom`)]);
  for (const [one, file] of [first, second]) await one.download(file);
  assert.deepEqual(fs.readFileSync(second[1]), fs.readFileSync(first[1]));
});

test("A link can be copied, and one that cannot be opened leaves the previous filter", clipboard, async (page) => {
  const view = new PlayView(page);
  const broken = page.getByText("The link could not be opened. The page still shows the previous filter.");
  const copy = async () => {
    await view.press("Copy link");
    await page.getByText("Copied.", { exact: true }).waitFor();
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

const status409 = { expects: [/status of 409/] };
const status400 = { expects: [/status of 400/] };
test("A link with an unknown layout or scheme makes no other filter", status400, async (page) => {
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

test("A link whose filter cannot be created passes no keys to the next link", status409, async (page) => {
  const view = new PlayView(page);
  const making = await hold(page, "**/api/1/filters");
  await page.goto(cities);
  await making.came;
  const planning = await hold(page, "**/api/1/plans");
  await page.goto(oslo);
  await planning.came;
  const error = { code: "too_large", what: "no room", where: "", expected: "", found: "", way_out: "" };
  making.go((route) => route.fulfill({ status: 409, json: { error } }));
  await view.shows("no room");
  planning.go();

  await view.holds("Oslo");
});

// ---- leaving the view ----

test("A filter that is created while the reader is away is there on return", async (page) => {
  const view = new PlayView(page);
  await view.open(cities);
  await view.holds("Madrid", "Barcelona");
  await toLearnAndBack(view);
  await view.holds("Madrid", "Barcelona");

  for (const [capacity, arrives] of [
    ["100", "before"],
    ["200", "after"],
  ]) {
    await view.field("Keys (n)").fill(capacity);
    const making = await hold(page, "**/api/1/filters");
    await view.press("Create filter");
    await making.came;
    const create = async () => {
      const dropped = page.waitForResponse((answer) => answer.request().method() === "DELETE");
      making.go();
      await dropped;
    };

    await toLearnAndBack(view, arrives === "before" ? create : undefined);
    if (arrives === "after") await create();

    await view.told(/2 keys carried over/);
    await view.holds("Madrid", "Barcelona");
    await view.linkIs(new RegExp(`capacity=${capacity}&.*keys=Madrid%2CBarcelona$`));
    assert.equal(await view.field("Keys (n)").inputValue(), capacity);
    for (const name of ["Create filter", "Create it again"]) assert.equal(await view.button(name).count(), 0);
  }
});

for (const [first, request, fails] of [
  ["/#play", "**/api/1/plans", false],
  ["", "**/api/1/plans", false],
  ["", "**/api/1/filters", false],
  ["", "**/api/1/filters", true],
]) {
  const when = `${first ? "second" : "first"} link, ${request} ${fails ? "fails" : "is pending"}`;
  test(`A link is opened when the reader returns to it: ${when}`, outage, async (page) => {
    const view = new PlayView(page);
    if (first) await view.open(first);
    const pending = await hold(page, request);
    await page.goto(cities);
    await pending.came;

    await toLearnAndBack(view, async () => {
      if (!fails) return;
      const failed = page.waitForEvent("requestfailed");
      pending.go((route) => route.abort("connectionrefused"));
      await failed;
    });
    if (!fails) pending.go();

    await view.holds("Madrid", "Barcelona");
    await view.linkIs(/scheme=pharo&.*keys=Madrid%2CBarcelona$/);
  });
}

test("A long paste continues in another view and can be stopped afterwards", { limit: 60 }, async (page) => {
  const view = new PlayView(page);
  await view.open("/#play?layout=split_block512&capacity=600000&rate=0.01");
  const adding = await hold(page, "**/add");
  await view.paste(numbered(500_000));
  await adding.came;

  await toLearnAndBack(view);
  await view.press("Stop");
  await view.key.fill("alice");
  await view.key.press("Enter");
  adding.go();

  await view.told(/Added alice/);
  assert.match((await view.story.allInnerTexts())[1], /^\+\s*Stopped after 100,000 keys/);
  for (let i = 0; i < 2; ++i) await view.undo();
  await becomes(view.setBits, /^0 of/);
});

// ---- outages ----

test("During an outage the page keeps the input, and links open when the server is back", outage, async (page) => {
  const view = new PlayView(page);
  const isBack = () => becomes(() => view.outage.count(), 0);
  let reconnect = await disconnect(page, "**/api/1/plans");
  await page.goto(cities);
  await view.outage.waitFor();
  await reconnect();
  await view.holds("Madrid", "Barcelona");
  assert.equal(await view.outage.count(), 0);

  reconnect = await disconnect(page);
  await view.key.fill("alice");
  await view.key.press("Enter");
  await view.outage.waitFor();
  await becomes(() => view.key.inputValue(), "alice");
  await reconnect();
  await isBack();
  await view.key.press("Enter");
  await view.holds("Madrid", "Barcelona", "alice");

  reconnect = await disconnect(page);
  await page.goto(oslo);
  await view.shows("The link could not be opened.");
  await view.key.fill("bob");
  await becomes(() => view.outage.count(), 2); // also at the top of the view
  await reconnect();
  await view.holds("Oslo");
  assert.equal(await view.outage.count(), 0);
  assert.match(page.url(), /keys=Oslo$/);
});

test("A filter that could not be created leaves the previous one with its keys", outage, async (page) => {
  const view = new PlayView(page);
  await view.open(cities);
  await view.holds("Madrid", "Barcelona");
  const before = await view.setBits.innerText();
  await view.field("Keys (n)").fill("100");
  await disconnect(page, "**/add", { times: 1 });
  await view.press("Create filter");
  await view.outage.first().waitFor();
  assert.match(await view.story.first().innerText(), /2 keys carried over/);
  await becomes(() => view.outage.count(), 0);
  assert.equal(await view.setBits.innerText(), before);
  assert.match(page.url(), /capacity=10&.*keys=Madrid%2CBarcelona$/);

  await view.press("Create filter");

  await view.linkIs(/capacity=100&.*keys=Madrid%2CBarcelona$/);
  await view.holds("Madrid", "Barcelona");
});

test("A filter that the server deleted can be created again", { expects: [/status of 404/] }, async (page) => {
  const view = new PlayView(page);
  await view.open(cities);
  const before = await view.setBits.innerText();
  await page.request.delete(view.address());
  await view.key.fill("Paris");
  await view.press("Create it again");
  await view.told(/2 keys carried over/);
  await focused(view.key);
  assert.equal(await view.setBits.innerText(), before);
  assert.equal(await view.key.inputValue(), "Paris");
});
