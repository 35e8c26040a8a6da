// The Inspect view of filters on Redis, compared with the command's output, also while the server is restarted.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { after, test as nodeTest } from "node:test";
import { eventually, noSeriousFindings, playground } from "./browser.mjs";
import { InspectView, keyLines, rounded, t } from "./inspect_view.mjs";

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

const { test: withRedis, command } = playground({
  filters: async (folder) => {
    fs.writeFileSync(path.join(folder, "keys"), keyLines(0, 5000));
    await redis.start();
    await command("build", "-q", "-o", redis.address("fixed"), "-n", "5000", "--shards", "4", "keys");
    await command("build", "-q", "-o", redis.address("grown"), "-n", "500", "--grow", "keys");
    return [redis.address("fixed"), redis.address("grown")];
  },
});
const test = redisProgram ? withRedis : (name) => nodeTest(name, { skip: "redis-server is not installed" }, () => {});

const [fixed, grown] = [0, 1];

// ---- the tests ----

test("An outage is reported with its time, and the last state stays", { limit: 60 }, async (page) => {
  const view = new InspectView(page);
  await view.open(fixed);
  const certified = await view.rate("certified");
  await command("pull", "-q", redis.address("fixed"), "-o", "pulled.bloom");
  assert.equal(certified, rounded(JSON.parse(await command("info", "--json", "pulled.bloom")).rate_now));
  const nodes = await view.table("inspect.shards.nodes");
  assert.deepEqual(nodes[1].slice(0, 2), [redis.socket, "4"]);

  await redis.kill();
  await view.alerts("inspect.trouble.unavailable");
  assert.match(await view.alert.innerText(), /Since \d\d:\d\d:\d\d/);
  assert.equal(await view.rate("certified"), certified);
  await redis.start();
  await view.live.waitFor();

  assert.equal(await view.alert.count(), 0);
  const { samples } = await (await page.request.get(`/api/1/inspections/${fixed}/history`)).json();
  const gaps = samples.filter((one) => one.keys === null);
  assert.equal(gaps.length, 1, "the outage is a gap in the history");
  assert.equal(rounded(samples.at(-1).rate), certified);
});

test("A scalable filter on a server shows its layers and their fill ratios", async (page) => {
  const view = new InspectView(page);
  await view.open(grown);
  await view.region("inspect.heat").getByRole("slider").waitFor();
  const { layers, bits } = JSON.parse(await command("info", "--json", redis.address("grown")));
  assert.equal(await view.blocks(), bits / 512);
  await view.shows("inspect.blocks.said.fits");

  assert.equal((await view.table("inspect.layers")).length - 1, layers);
  await noSeriousFindings(page);
});
