// The page as static files: the whole API runs in the browser, as a WebAssembly module. The other files test the same
// page from the command. These tests show that a static host suffices, and that the module answers as the native API.
//
// Environment: BLOOMERY_SITE, the folder of the page; build/site
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import readline from "node:readline";
import { test as nodeTest } from "node:test";
import { becomes, eventually, noSeriousFindings, playground, source, tableOf, words } from "./browser.mjs";
import { fileOf, PlayView } from "./play_view.mjs";
import { moduleOf } from "./site_module.mjs";

const site = path.resolve(process.env.BLOOMERY_SITE ?? path.join(source, "build/site"));
if (!fs.existsSync(site)) {
  console.log(`SKIP: there is no ${site}: run make page`);
  process.exit(77);
}
const { test, command, folder } = playground({ site });
const en = words("en");
const at = (name) => path.join(folder, name);

test("The first chapter works in any folder of a host, and weighs less than 450 kB", async (page) => {
  const answers = [];
  page.on("requestfinished", (one) => answers.push(one.sizes()));
  await page.goto("/sub/#learn/1");
  await page.getByRole("button", { name: en("learn.ask", { key: "Madrid" }) }).click();
  await becomes(page.locator(".said").first(), /certainly never/);
  const bytes = (await Promise.all(answers)).reduce((sum, one) => sum + one.responseBodySize, 0);
  assert(bytes > 200_000 && bytes < 450_000, `${bytes} bytes`);
  await noSeriousFindings(page);
});

test("A filter of the page is a file for the command, and the reverse", { journey: true }, async (page) => {
  const view = new PlayView(page);
  await view.open();
  await view.field("Keys (n)").fill("40");
  await view.field("FPR (p)").fill("20%");
  await view.layout.selectOption("blocked");
  await view.told(/New filter: 512 bits/);
  for (const one of ["alice", "bob", "München"]) await view.add(one);
  await view.addresses.fill("30");
  await view.press("Add random addresses");
  await view.told(/Added 30 keys/);
  const all = ["alice", "bob", "München", ...Array.from({ length: 25 }, (_, i) => `absent ${i}`)];
  const maybe = [];
  for (const one of all) if ((await view.ask(one)) === "maybe") maybe.push(one);
  await view.download(at("made.bloom"));
  assert.deepEqual(
    (await command("check", "made.bloom", "-", { input: `${all.join("\n")}\n` })).split("\n").slice(0, -1),
    maybe,
  );

  await command("build", "-o", "built.bloom", "-n", "100", "-p", "0.001", { input: "alice\nbob\n" });
  await page.getByLabel("Open a file").setInputFiles(at("built.bloom"));
  await view.told(/Opened built\.bloom/);
  assert.equal(await view.ask("alice"), "maybe");
  assert.equal(await view.ask("mallory"), "no");
  await page.getByLabel("Open a file").setInputFiles(fileOf("notes.txt", "no filter"));
  await becomes(page.getByRole("alert"), /^notes\.txt: not a bloomery/);
  await command("build", "--quotient", "-n", "100", "-o", "quotient.bloom", { input: "alice\n" });
  await page.getByLabel("Open a file").setInputFiles(at("quotient.bloom"));
  await becomes(page.getByRole("alert"), /cells .* too large to be shown/);
});

test("An experiment runs in the browser, can be cancelled, and the next one starts", { limit: 60 }, async (page) => {
  await page.goto("/#measure?capacity=1000&rate=0.01");
  await page.getByText(en("measure.intro.here")).waitFor();
  const panel = page.getByRole("region", { name: en("measure.analysis.ask"), exact: true });
  const start = panel.getByRole("button", { name: en("measure.start"), exact: true });
  await start.click();
  await becomes(panel.locator("form [role=status]"), en("measure.done"), 40);
  assert((await tableOf(panel.locator("figure"))).length > 5);
  const benchmark = page.getByRole("region", { name: en("measure.benchmark.ask"), exact: true });
  await benchmark.getByRole("button", { name: en("measure.start"), exact: true }).click();
  await benchmark.getByRole("button", { name: en("measure.cancel"), exact: true }).click();
  await becomes(benchmark.locator("form [role=status]"), en("measure.cancelled"));
  await start.click();
  await becomes(panel.locator("form [role=status]"), en("measure.done"), 40);
});

test("A page whose module is missing says so, and can be loaded again", { expects: [/./] }, async (page) => {
  await page.route("**/*.wasm", (route) => route.abort());
  await page.goto("/#learn/1");
  await becomes(page.getByRole("alert"), new RegExp(en("nav.failed")));
  await page.unroute("**/*.wasm");
  await page.getByRole("button", { name: en("nav.reload") }).click();
  await page.getByRole("button", { name: en("learn.ask", { key: "Madrid" }) }).waitFor();
});

// ---- the module itself ----------------------------------------------------------------------------------------------

/** The same API as a native program (tests/playground/answers_main.cpp), whose answers are compared with the module's. */
function native() {
  const child = spawn(process.env.BLOOMERY_PLAYGROUND_ANSWERS, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const handle = async (method, path, body = "") => {
    child.stdin.write(`${JSON.stringify({ method, path, body })}\n`);
    const { status, base64 } = JSON.parse((await lines.next()).value);
    return { status, body: Buffer.from(base64, "base64") };
  };
  return { handle, end: () => child.stdin.end() };
}

/** JSON as values, other bytes as text. */
function plain({ body }) {
  const text = body.toString("latin1");
  return /^[[{]/.test(text) ? JSON.parse(text) : text;
}

/** Whether two values are equal; fractions up to 1e-9 of them, because logarithms of two C libraries differ so much. */
function alike(a, b) {
  if (typeof a === "number" && typeof b === "number" && !Number.isInteger(a)) {
    return Math.abs(a - b) <= 1e-9 * Math.abs(a);
  }
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => name in b && alike(a[name], b[name]));
}

const skip = !process.env.BLOOMERY_PLAYGROUND_ANSWERS && "BLOOMERY_PLAYGROUND_ANSWERS is not set";
nodeTest("The module answers each request as the native API does", { skip }, async () => {
  const here = await moduleOf();
  const there = native();
  const parameters = [
    { scheme: "pharo", capacity: 10, bits: 48, probes: 4 },
    { scheme: "guava", capacity: 1000, rate: 0.03 },
    ...["classic", "split_block", "split_block512", "blocked", "blocked_page", "counting"].map((layout) => ({
      layout,
      capacity: 500,
      rate: 0.05,
      seed: "7",
    })),
    { layout: "classic", hash: "murmur3", capacity: 500, rate: 0.001 },
    { rate: 0.02, window_keys: 300 },
    { capacity: 100, rate: 0.01, grows: true },
    { capacity: 10, rate: 2 },
    { layout: "no such" },
  ];
  const keys = JSON.stringify({ keys: ["Madrid", "北京", "", { base64: "//79" }, "a b"] });
  const addresses = JSON.stringify({ addresses: { seed: "3", first: 5, count: 700 } });
  const strangers = JSON.stringify({ addresses: { seed: "9", first: 0, count: 500 } });
  let compared = 0;
  try {
    for (const wanted of parameters) {
      const text = JSON.stringify(wanted);
      const ids = [here.handle("POST", "/api/1/filters", text), await there.handle("POST", "/api/1/filters", text)].map(
        (made) => (made.status === 201 ? JSON.parse(made.body).id : "none"),
      );
      const same = async (method, where, body) => {
        const one = here.handle(method, where.replace("ID", ids[0]), body);
        const other = await there.handle(method, where.replace("ID", ids[1]), body);
        assert.equal(one.status, other.status, `${method} ${where} of ${text}`);
        assert(alike(plain(one), plain(other)), `${method} ${where} of ${text}: ${one.body} ${other.body}`);
        ++compared;
      };
      await same("POST", "/api/1/plans", text);
      for (const body of [keys, addresses]) await same("POST", "/api/1/filters/ID/add", body);
      for (const body of [keys, strangers]) await same("POST", "/api/1/filters/ID/ask", body);
      await same("POST", "/api/1/filters/ID/remove", JSON.stringify({ key: "Madrid" }));
      await same("POST", "/api/1/filters/ID/search", JSON.stringify({ count: 20000, seed: "4" }));
      for (const part of [
        "",
        "/steps",
        "/cells?from=0&count=5000",
        "/fill?ranges=7",
        "/curve",
        "/file",
        "/keys?from=0&count=9",
      ]) {
        await same("GET", `/api/1/filters/ID${part}`);
      }
    }
    const job = JSON.stringify({
      kind: "analysis",
      filter: { capacity: 400, rate: 0.05 },
      runs: 5,
      queries: 20000,
      seed: "2",
    });
    const id = JSON.parse(here.handle("POST", "/api/1/jobs", job).body).id;
    here.run(id);
    const far = JSON.parse((await there.handle("POST", "/api/1/jobs", job)).body).id;
    const results = [
      JSON.parse(here.handle("GET", `/api/1/jobs/${id}`).body),
      await eventually(async () => {
        const said = JSON.parse((await there.handle("GET", `/api/1/jobs/${far}`)).body);
        assert.equal(said.state, "done");
        return said;
      }),
    ];
    assert.equal(results[0].state, "done");
    assert(alike(results[0].result, results[1].result));
    assert(compared > 150, `${compared} requests`);
  } finally {
    there.end();
  }
});
