// The Inspect view of filters on Redis, compared with the command's output, also while the server is restarted.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { after, test as nodeTest } from "node:test";
import { eventually, noSeriousFindings, numberOf, playground, tableOf, words } from "./browser.mjs";

// ---- a server of Redis ----

const redisProgram = ["/usr/bin", ...(process.env.PATH ?? "").split(path.delimiter)]
  .map((one) => path.join(one, "redis-server"))
  .find((one) => fs.existsSync(one));

if (!redisProgram) {
  console.log("SKIP: redis-server is not installed");
  if (!process.env.NODE_TEST_CONTEXT) process.exit(77); // as in browser.mjs
}

/** Listens on a socket, whose path must be short, and persists all writes. */
class Redis {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "bloomery-r-"));
  socket = path.join(this.folder, "s");
  child = null;

  address = (name) => `unix://${this.socket}?name=${name}`;

  async start() {
    const options = ["--port", "0", "--unixsocket", this.socket, "--dir", this.folder, "--save", ""];
    const kept = ["--appendonly", "yes", "--appendfsync", "always"];
    this.child = spawn(redisProgram, [...options, ...kept], {
      stdio: "ignore",
    });
    await eventually(() => assert(fs.existsSync(this.socket)));
  }

  async kill() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await ended;
    fs.rmSync(this.socket, { force: true });
    this.child = null;
  }

  end() {
    this.child?.kill("SIGKILL");
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

const redis = new Redis();
process.on("exit", () => redis.end());
after(() => redis.end());

// ---- the filters ----

const lines = (from, to) => Array.from({ length: to - from }, (_, i) => `key ${from + i}\n`).join("");

const { test: withRedis, command } = playground({
  filters: async (folder) => {
    fs.writeFileSync(path.join(folder, "keys"), lines(0, 5000));
    await redis.start();
    await command("build", "-q", "-o", redis.address("fixed"), "-n", "5000", "--shards", "4", "keys");
    await command("build", "-q", "-o", redis.address("grown"), "-n", "500", "--grow", "keys");
    return [redis.address("fixed"), redis.address("grown")];
  },
});
const test = redisProgram ? withRedis : (name) => nodeTest(name, { skip: "redis-server is not installed" }, () => {});

const [fixed, grown] = [0, 1];
const t = words("en");

/** One of the three FPRs in large type. */
const rate = (page, name) =>
  eventually(async () => numberOf(await page.locator(`[data-rate=${name}]`).innerText({ timeout: 1000 })));

const rounded = (n) => Number(n.toPrecision(3));

// ---- the tests ----

test("An outage is reported with its time, and the last state stays", { limit: 60 }, async (page) => {
  await page.goto(`/#inspect/${fixed}`);
  const certified = await rate(page, "certified");
  await command("pull", "-q", redis.address("fixed"), "-o", "pulled.bloom");
  assert.equal(certified, rounded(JSON.parse(await command("info", "--json", "pulled.bloom")).rate_now));
  const nodes = await tableOf(page.getByRole("region", { name: t("inspect.shards.nodes") }));
  assert.deepEqual(nodes[1].slice(0, 2), [redis.socket, "4"]);

  await redis.kill();
  await page.getByRole("alert").getByText(t("inspect.trouble.unavailable")).waitFor();
  assert.match(await page.getByRole("alert").innerText(), /Since \d\d:\d\d:\d\d/);
  assert.equal(await rate(page, "certified"), certified);
  await redis.start();
  await page.locator(".live").waitFor();

  assert.equal(await page.getByRole("alert").count(), 0);
});

test("A scalable filter on a server shows its layers and their fill ratios", async (page) => {
  await page.goto(`/#inspect/${grown}`);
  await page
    .getByRole("region", { name: t("inspect.heat"), exact: true })
    .getByRole("slider")
    .waitFor();
  const { layers, bits } = JSON.parse(await command("info", "--json", redis.address("grown")));
  const blocks = await tableOf(page.getByRole("region", { name: t("inspect.blocks"), exact: true }));
  assert.equal(
    blocks.slice(1).reduce((sum, [, found]) => sum + numberOf(found), 0),
    bits / 512,
  );
  await page.getByText(t("inspect.blocks.said.fits")).waitFor();

  const rows = await tableOf(page.getByRole("region", { name: t("inspect.layers"), exact: true }).first());

  assert.equal(rows.length - 1, layers);
  await noSeriousFindings(page);
});
