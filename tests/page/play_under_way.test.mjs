// The Play view with pending requests: the reader leaves and returns, opens one link after another, and the server goes
// down and comes back.
import assert from "node:assert/strict";
import { eventually, hold, playground } from "./browser.mjs";
import { add, button, cities, field, holds, key, open, paste, setBits, story, told } from "./play_view.mjs";

const { test } = playground();

const refuse = (route) => route.abort("connectionrefused");
const away = (page) => page.getByText("The playground does not answer.");

async function toLearnAndBack(page, between = () => {}) {
  await page.getByRole("link", { name: "Learn" }).click();
  await page.getByRole("heading", { name: "What does an empty filter know?" }).waitFor();
  await between();
  await page.getByRole("link", { name: "Play" }).click();
  await key(page).waitFor();
}

// ---- leaving the view ----

for (const back of [false, true]) {
  const when = back ? "and still on return, appears" : "is there on return";
  test(`A filter that is being created when the reader leaves, ${when}`, async (page) => {
    await open(page, cities);
    await holds(page, ["Madrid", "Barcelona"]);
    await field(page, "Keys (n)").fill("100");
    const making = await hold(page, "**/api/1/filters");
    await button(page, "Create filter").click();
    await making.came;
    const goOn = async () => {
      const dropped = page.waitForResponse((answer) => answer.request().method() === "DELETE");
      making.go();
      await dropped;
    };

    await toLearnAndBack(page, back ? undefined : goOn);
    if (back) await goOn();

    await told(page, /2 keys carried over/);
    await holds(page, ["Madrid", "Barcelona"]);
    await eventually(async () => assert.match(page.url(), /capacity=100&.*keys=Madrid%2CBarcelona$/));
    assert.equal(await field(page, "Keys (n)").inputValue(), "100");
    assert.equal(await button(page, "Create filter").count(), 0);
    assert.equal(await button(page, "Create it again").count(), 0);
  });
}

for (const [link, what, path] of [
  ["second link", "planned", "**/api/1/plans"],
  ["first link", "planned", "**/api/1/plans"],
  ["first link", "made", "**/api/1/filters"],
]) {
  test(`A ${link} whose filter is being ${what} when the reader leaves is opened on return`, async (page) => {
    if (link === "second link") await open(page);
    const waiting = await hold(page, path);
    await page.goto(cities);
    await waiting.came;

    await toLearnAndBack(page);
    waiting.go();

    await holds(page, ["Madrid", "Barcelona"]);
    await eventually(async () => assert.match(page.url(), /scheme=pharo&.*keys=Madrid%2CBarcelona$/));
  });
}

test(
  "A first link whose filter could not be created when the reader left is opened on return",
  { expects: [/ERR_/] },
  async (page) => {
    const making = await hold(page, "**/api/1/filters");
    await page.goto(cities);
    await making.came;

    await toLearnAndBack(page, async () => {
      const failed = page.waitForEvent("requestfailed");
      making.go(refuse);
      await failed;
    });

    await holds(page, ["Madrid", "Barcelona"]);
  },
);

test("A long paste continues in another view and can be stopped afterwards", { limit: 60 }, async (page) => {
  await open(page, "/#play?layout=split_block512&capacity=600000&rate=0.01");
  const adding = await hold(page, "**/add");
  await paste(page, Array.from({ length: 500_000 }, (_, i) => `line ${i}`).join("\n"));
  await adding.came;

  await toLearnAndBack(page);
  await button(page, "Stop").click();
  await key(page).fill("alice");
  await key(page).press("Enter");
  adding.go();

  await told(page, /Added alice/);
  const said = await page.getByRole("region", { name: "What just happened" }).getByRole("listitem").allInnerTexts();
  assert.match(said[1], /^\+\s*Stopped after 100,000 keys/);
  for (let i = 0; i < 2; ++i) {
    await button(page, "Undo").click();
    await told(page, /was undone/);
  }
  await eventually(async () => assert.match(await setBits(page).innerText(), /^0 of/));
});

// ---- links ----

test(
  "A link whose filter cannot be created passes no keys to the next link",
  { expects: [/status of 409/] },
  async (page) => {
    const making = await hold(page, "**/api/1/filters");
    await page.goto(cities);
    await making.came;
    const planning = await hold(page, "**/api/1/plans");
    await page.goto("/#play?layout=classic&capacity=10&bits=100&probes=3&keys=Oslo");
    await planning.came;
    const error = { code: "too_large", what: "no room", where: "", expected: "", found: "", way_out: "" };
    making.go((route) => route.fulfill({ status: 409, json: { error } }));
    await page.getByText("no room").waitFor();
    planning.go();

    await holds(page, ["Oslo"]);
  },
);

// ---- outages ----

test("The first filter appears by itself when the server is back", { expects: [/ERR_/] }, async (page) => {
  await page.route("**/api/1/plans", refuse);
  await page.goto(cities);
  await away(page).waitFor();

  await page.unroute("**/api/1/plans");

  await holds(page, ["Madrid", "Barcelona"]);
  assert.equal(await away(page).count(), 0);
});

test("A link opened during an outage works when the server is back", { expects: [/ERR_/] }, async (page) => {
  await open(page);
  await add(page, "alice");
  await page.route("**/api/**", refuse);
  await page.goto(cities);
  await page.getByText("The link could not be opened.").waitFor();
  await key(page).fill("bob");
  await eventually(async () => assert.equal(await away(page).count(), 2)); // also at the top of the view

  await page.unroute("**/api/**");

  await holds(page, ["Madrid", "Barcelona"]);
  assert.equal(await away(page).count(), 0);
  assert.match(page.url(), /keys=Madrid%2CBarcelona$/);
});

test(
  "A filter that could not be created leaves the previous one with its keys",
  { expects: [/ERR_/] },
  async (page) => {
    await open(page, cities);
    await holds(page, ["Madrid", "Barcelona"]);
    const before = await setBits(page).innerText();
    await field(page, "Keys (n)").fill("100");
    await page.route("**/add", refuse, { times: 1 });
    await button(page, "Create filter").click();
    await away(page).first().waitFor();
    assert.match(await story(page).innerText(), /2 keys carried over/);
    await eventually(async () => assert.equal(await away(page).count(), 0));
    assert.equal(await setBits(page).innerText(), before);
    assert.match(page.url(), /capacity=10&.*keys=Madrid%2CBarcelona$/);

    await button(page, "Create filter").click();

    await eventually(async () => assert.match(page.url(), /capacity=100&.*keys=Madrid%2CBarcelona$/));
    await holds(page, ["Madrid", "Barcelona"]);
  },
);

test("A partial undo is completed by the next undo", { expects: [/ERR_/] }, async (page) => {
  await open(page, "/#play?layout=split_block512&capacity=250000&rate=0.01");
  await add(page, "alice");
  const alone = await setBits(page).innerText();
  await paste(page, Array.from({ length: 120_000 }, (_, i) => `line ${i}`).join("\n"));
  await told(page, /Added 120,000 keys/);
  await page.route("**/undo", refuse, { times: 1 });
  await button(page, "Undo").click();
  await away(page).first().waitFor();
  await eventually(async () => assert.equal(await away(page).count(), 0));

  await button(page, "Undo").click();
  await told(page, /was undone/);

  await eventually(async () => assert.equal(await setBits(page).innerText(), alone));
  await button(page, "Undo").click();
  await eventually(async () => assert.match(await setBits(page).innerText(), /^0 of/));
});
