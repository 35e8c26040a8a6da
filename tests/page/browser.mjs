// Harness of the page tests: the real command, a real Chromium or Firefox, and pages whose errors are collected.
//
//   import { playground, noSeriousFindings } from "./browser.mjs";
//
//   const { test, command } = playground();
//   test("An empty filter denies every key", async (page) => {
//     await page.goto("/#learn/1");
//     await page.getByRole("button", { name: "Look up Madrid" }).click();
//     await eventually(async () => assert.match(await page.locator(".said").innerText(), /certainly never/));
//   });
//   test("It fits a phone", { width: 360, dark: true, language: "zh", journey: true }, async (page) => { ... });
//
// Each file has one server and one browser; each test has a page of its own in a fresh context. A test also fails if
// its page writes an error to the console, throws one, or sends a request to another server. A test that fails or
// hangs leaves a screenshot and the server's output.
//
// Environment: BLOOMERY, the command; BLOOMERY_PAGE_PACKAGES, the directory of node_modules; BLOOMERY_PAGE_DIST, a
// built page to use instead of the command's own, during development; BLOOMERY_BROWSER, chromium or firefox;
// BLOOMERY_CHROMIUM or BLOOMERY_FIREFOX, its program; BLOOMERY_PAGE_PART=0/2, every second test of the file, starting
// with the first; 1/2 are the others. In Firefox, only journeys run, and all tests if BLOOMERY_LONG is 1.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { after, test as nodeTest } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import zlib from "node:zlib";

export const source = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const binary = path.resolve(process.env.BLOOMERY ?? path.join(source, "build/dev/bloomery"));
const dist = process.env.BLOOMERY_PAGE_DIST;
const pictures = path.join(os.tmpdir(), "bloomery-page-failures");
const [part, parts] = (process.env.BLOOMERY_PAGE_PART ?? "0/1").split("/").map(Number);

// ---- requirements ----

function packages() {
  const named = process.env.BLOOMERY_PAGE_PACKAGES;
  const folders = named
    ? [path.resolve(named)]
    : ["build/page", "playground/page"].map((one) => path.join(source, one));
  const found = folders.find((one) => fs.existsSync(path.join(one, "node_modules/playwright-core")));
  assert(found, `playwright-core is not in ${folders.join(" or ")}: build the page first, or run npm ci there`);
  return createRequire(path.join(found, "package.json"));
}

const browserName = process.env.BLOOMERY_BROWSER || "chromium";
assert(["chromium", "firefox"].includes(browserName), `BLOOMERY_BROWSER is ${browserName}`);
export const inFirefox = browserName === "firefox";
export const isLong = process.env.BLOOMERY_LONG === "1";

/** The headless shell is the first choice for Chromium: it takes half the time. */
function program() {
  const named = process.env[`BLOOMERY_${browserName.toUpperCase()}`];
  if (named) return named;
  const folders = ["/usr/bin", ...(process.env.PATH ?? "").split(path.delimiter)];
  return (inFirefox ? ["firefox-esr", "firefox"] : ["chromium-headless-shell", "chromium"])
    .flatMap((name) => folders.map((one) => path.join(one, name)))
    .find((one) => fs.existsSync(one));
}

const browserFile = program();
if (!browserFile) {
  console.log(`SKIP: ${browserName} is not installed`);
  if (!process.env.NODE_TEST_CONTEXT) process.exit(77); // under `node --test`, each test is skipped
}

// ---- the server ----

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** Serves the files of a folder and nothing else, as any host of static pages: at the root, and in the folder /sub. */
async function serveFiles(folder) {
  const host = http.createServer((asked, answer) => {
    const name = decodeURIComponent(new URL(asked.url, "http://host").pathname).replace(/\/$/, "/index.html");
    const file = path.join(folder, name.replace(/^\/sub\//, "/"));
    const found = file.startsWith(folder) && fs.existsSync(file);
    const type = types[path.extname(file)] ?? "text/plain";
    answer.writeHead(found ? 200 : 404, { "content-type": type, "content-encoding": "gzip" });
    answer.end(zlib.gzipSync(found ? fs.readFileSync(file) : "not found", { level: 9 }));
  });
  await new Promise((done) => host.listen(0, "127.0.0.1", done));
  return { said: "", url: `http://127.0.0.1:${host.address().port}`, end: () => host.close() };
}

/** Starts the command in a folder and waits for the address that it prints. */
async function serve(folder, files) {
  const child = spawn(binary, ["playground", "--no-open", "--port", "0", ...files], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const server = { child, said: "", url: "", end: () => stop(child) };
  child.stderr.on("data", (text) => (server.said += text));
  await new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`no address within 30 s. ${server.said}`)), 30_000);
    const end = (how) => {
      clearTimeout(limit);
      how();
    };
    let line = "";
    child.on("error", (e) => end(() => reject(e)));
    child.on("exit", (status) => end(() => reject(new Error(`${binary} ended with ${status}. ${server.said}`))));
    child.stdout.on("data", (text) => {
      line += text;
      server.url = /^(http:\/\/\S+?)\/?\n/.exec(line)?.[1] ?? "";
      if (server.url) end(resolve);
    });
  });
  return server;
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), 5000);
  await ended;
  clearTimeout(late);
}

/** Serves the page from a folder instead of from the command, with the same security policy. */
async function shownFrom(folder, context, url) {
  const rules = (await fetch(url)).headers.get("content-security-policy") ?? "";
  await context.route(/^[^?]*$/, (route) => {
    const name = new URL(route.request().url()).pathname.replace(/\/$/, "/index.html");
    const file = path.join(folder, name);
    if (name.startsWith("/api/") || !fs.existsSync(file)) return route.continue();
    const headers = { "content-type": types[path.extname(file)] ?? "text/plain", "content-security-policy": rules };
    const body = fs.readFileSync(file);
    const text = path.extname(file) === ".html" ? String(body).replace("<html ", "<html data-served ") : body;
    return route.fulfill({ body: text, headers });
  });
}

// ---- the browser ----

const home = fs.mkdtempSync(path.join(os.tmpdir(), "bloomery-page-home-"));
const downloads = fs.mkdtempSync(path.join(home, "downloads-"));
process.on("exit", () => fs.rmSync(home, { recursive: true, force: true }));

function chromium() {
  return packages()("playwright-core").chromium.launch({
    executablePath: browserFile,
    args: [
      ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    ],
  });
}

/** The channel is for Firefox itself, over WebDriver BiDi. Without one, Playwright expects a patched Firefox. */
function firefox(dark, reducedMotion) {
  return packages()("playwright-core").firefox.launch({
    channel: "moz-firefox",
    executablePath: browserFile,
    env: { ...process.env, HOME: home },
    downloadsPath: downloads,
    firefoxUserPrefs: {
      "layout.css.prefers-color-scheme.content-override": dark ? 0 : 1,
      "ui.prefersReducedMotion": reducedMotion ? 1 : 0,
      "dom.events.testing.asyncClipboard": true, // reading needs no permission
    },
  });
}

// ---- the tests of a file ----

/**
 * A server and a browser for the tests of this file.
 *
 * filters: files or addresses to inspect, or a function (folder, command) that creates them in an empty folder and
 * returns their names. site: the folder of a page without a server, to test instead. Returns { test, command, url, folder }: url() is the server's address, and
 * command("plan", "-n", "1000") runs the command in the folder and returns its standard output. The last argument may
 * be { input: "a\nb\n" }.
 */
export function playground({ filters = [], site } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bloomery-page-"));
  let server;
  const browsers = new Map();
  let starting;
  let idle;
  let given = 0;

  async function command(...words) {
    const input = typeof words.at(-1) === "object" ? words.pop().input : "";
    const running = promisify(execFile)(binary, words, { cwd: folder, maxBuffer: 1 << 28, timeout: 60_000 });
    running.child.stdin.on("error", () => {}); // it may exit without reading; its status is checked
    running.child.stdin.end(input);
    return (await running).stdout;
  }

  async function start() {
    const named = typeof filters === "function" ? await filters(folder, command) : filters;
    server = site ? await serveFiles(site) : await serve(folder, named);
  }

  /** A browser whose system has these preferences. Firefox has its own for each: WebDriver BiDi cannot change them. */
  function browserWith(dark, reducedMotion) {
    const look = inFirefox ? `${dark} ${reducedMotion}` : "any";
    if (!browsers.has(look)) browsers.set(look, inFirefox ? firefox(dark, reducedMotion) : chromium());
    return browsers.get(look);
  }

  async function end() {
    clearTimeout(idle);
    starting = undefined;
    const open = [...browsers.values()];
    browsers.clear();
    await Promise.all(open.map(async (one) => (await one).close()));
    await server?.end();
  }
  after(end);

  // Last resort; a browser exits by itself when its pipe closes.
  process.on("exit", () => {
    if (given === 0 && inFirefox && !isLong) {
      console.log("SKIP: these tests run in Firefox with BLOOMERY_LONG=1 only");
      process.exitCode = 77;
    }
    if (server?.child?.exitCode === null) server.child.kill("SIGKILL");
    fs.rmSync(folder, { recursive: true, force: true });
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

  /**
   * test(name, async (page, context) => ...), with options before the function:
   *   width, height          of the window; 1280 x 800
   *   language               "en" or "zh": that of the browser
   *   dark, reducedMotion    the system's preferences
   *   expects                patterns of expected console errors: [/status of 409/]
   *   limit                  seconds until the test counts as hanging; 90. Firefox, which is slower, has four times the limit
   *   journey                true: a main path through the page, which runs in each browser
   *   context                other options of Playwright's newContext()
   */
  function test(name, options, run) {
    if (typeof options === "function") [options, run] = [{}, options];
    if (inFirefox && !options.journey && !isLong) return;
    if (given++ % parts !== part) return;
    const { width = 1280, height = 800, language = "en", dark = false, reducedMotion = false } = options;
    const { expects = [] } = options;
    const limit = (options.limit ?? 90) * (inFirefox ? 4 : 1);
    nodeTest(name, { skip: !browserFile && `${browserName} is not installed` }, async () => {
      clearTimeout(idle);
      await (starting ??= start());
      const context = await (
        await browserWith(dark, reducedMotion)
      ).newContext({
        baseURL: server.url,
        viewport: { width, height },
        locale: language === "zh" ? "zh-CN" : "en-US",
        colorScheme: dark ? "dark" : "light",
        reducedMotion: reducedMotion ? "reduce" : "no-preference",
        ...options.context,
      });
      if (dist) await shownFrom(path.resolve(dist), context, server.url);
      const troubles = [];
      const note = (text) => expects.some((one) => one.test(text)) || troubles.push(text);
      context.on("console", (said) => said.type() === "error" && note(`console: ${said.text()}`));
      context.on("weberror", (e) => note(`error: ${e.error().stack || e.error()}`));
      context.on("request", (asked) => {
        const to = new URL(asked.url());
        if (!["data:", "blob:"].includes(to.protocol) && to.origin !== server.url) note(`request to ${asked.url()}`);
      });
      const page = await context.newPage();
      page.setDefaultTimeout(1000 * Math.min(30, limit));
      let bell;
      const hung = new Promise((_, reject) => {
        bell = setTimeout(() => reject(new Error(`it hung: no end within ${limit} s`)), 1000 * limit);
      });
      try {
        const running = Promise.resolve(run(page, context));
        running.catch(() => {}); // ignore failures after a timeout
        await Promise.race([running, hung]);
        assert.deepEqual(troubles, [], "what the page complained of");
      } catch (e) {
        const picture = path.join(
          pictures,
          `${path.basename(process.argv[1], ".mjs")} ${name}.png`.replace(/[^\w.-]+/g, "-"),
        );
        const taken = await page.screenshot({ path: picture, fullPage: true, timeout: 5000 }).then(
          () => picture,
          (no) => `none, ${String(no).split("\n", 1)[0]}`,
        );
        console.error(
          `FAILED: ${name}\n  at: ${page.url()}\n  picture: ${taken}\n  the page: ${troubles.join("\n    ") || "no complaint"}`,
        );
        console.error(
          `  the server: ${server.said.trim()}${server.child?.exitCode == null ? "" : ` (it ended: ${server.child.exitCode})`}`,
        );
        throw e;
      } finally {
        clearTimeout(bell);
        await Promise.race([context.close(), pause(5000, undefined, { ref: false })]);
        idle = setTimeout(end, 1000); // early releases of Node.js 18 have no after()
      }
    });
  }

  return { test, command, url: () => server.url, folder };
}

// ---- assertions and helpers ----

/** Repeats `claim` until it does not throw; returns its result. */
export async function eventually(claim, seconds = 30) {
  const end = Date.now() + 1000 * seconds;
  for (;;) {
    try {
      return await claim();
    } catch (e) {
      if (Date.now() > end) throw e;
    }
    await pause(20);
  }
}

/**
 * Waits until what `read` returns matches a pattern or equals the expected value. A locator is read as its text:
 *
 *   await becomes(page.locator(".said"), /certainly never/);
 *   await becomes(() => page.url(), /#play$/);
 */
export function becomes(read, expected, seconds) {
  const value = typeof read === "function" ? read : () => read.innerText({ timeout: 1000 });
  return eventually(async () => {
    if (expected instanceof RegExp) assert.match(await value(), expected);
    else assert.deepEqual(await value(), expected);
  }, seconds);
}

export const focused = (locator) => becomes(() => locator.evaluate((node) => node === document.activeElement), true);

/** Waits until the element is gone, or asserts that it is not there. */
export const gone = (locator) => becomes(() => locator.count(), 0);

export const copied = (page) => page.evaluate(() => navigator.clipboard.readText());

/** Does what starts a download, and saves its file. Over WebDriver BiDi, Firefox does not report a download. */
export async function download(page, act, file) {
  const coming = inFirefox ? undefined : page.waitForEvent("download");
  await act();
  if (coming) return (await coming).saveAs(file);
  const isDone = (name) => !name.endsWith(".part") && fs.statSync(path.join(downloads, name)).size > 0;
  const name = await eventually(() => {
    const found = fs.readdirSync(downloads).filter(isDone);
    assert.equal(found.length, 1);
    return found[0];
  });
  fs.renameSync(path.join(downloads, name), file);
}

/** Follows a link of the page's head to another view. */
export const follow = (page, name) => page.getByRole("link", { name, exact: true }).click();

/** Makes requests fail, as if there were no server, until the returned function is called. */
export async function disconnect(page, path = "**/api/**", options = {}) {
  const refuse = (route) => route.abort("connectionrefused");
  await page.route(path, refuse, options);
  return () => page.unroute(path, refuse);
}

/** Holds the next request to `path` until go() is called; go(how) handles the request in another way. */
export async function hold(page, path) {
  let go;
  const going = new Promise((resolve) => (go = resolve));
  let come;
  const came = new Promise((resolve) => (come = resolve));
  let held = false;
  await page.route(path, async (route) => {
    if (held) return route.fallback();
    held = true;
    come();
    const how = await going;
    return how ? how(route) : route.continue();
  });
  return { came, go };
}

/**
 * Observes the requests that the page sends to its workers, as "POST /api/1/filters". Call it before the page is opened.
 *
 *   const { sent, hold, fail } = await tasks(page);
 *   const adding = await hold(/add$/);      the next such request waits; so does each one that follows it
 *   await adding.came();
 *   await adding.go();
 *   await fail();                           the worker that had the last request throws: it gets no request, but null
 */
export async function tasks(page) {
  await page.addInitScript(() => {
    const send = Worker.prototype.postMessage;
    const all = (globalThis.tasks = { sent: [], holds: [] });
    Worker.prototype.postMessage = function (task, ...more) {
      const name = `${task.method} ${task.path}`;
      all.sent.push(name);
      all.fail = () => send.call(this, null);
      const held = all.holds.find((one) => !one.go && new RegExp(one.pattern).test(name));
      if (held) held.go = () => send.call(this, task, ...more);
      else send.call(this, task, ...more);
    };
  });
  const holds = [];
  const hold = async (pattern) => {
    const number = holds.push(pattern.source) - 1;
    const add = (source) => globalThis.tasks.holds.push({ pattern: source });
    // For a page that is not open yet, or is opened again.
    if (page.url() === "about:blank") await page.addInitScript(add, pattern.source);
    else await page.evaluate(add, pattern.source);
    const called = (at) => globalThis.tasks.holds[at]?.go !== undefined;
    return {
      came: () => becomes(() => page.evaluate(called, number), true),
      go: () => page.evaluate((at) => globalThis.tasks.holds[at].go(), number),
    };
  };
  return {
    sent: () => page.evaluate(() => globalThis.tasks.sent),
    hold,
    fail: () => page.evaluate(() => globalThis.tasks.fail()),
  };
}

/**
 * Asserts that axe finds nothing serious or critical; `within` is the selector of a part. Firefox has the same elements
 * and styles as Chromium, and axe takes seconds there, so it runs in Firefox only if BLOOMERY_LONG is 1.
 */
export async function noSeriousFindings(page, within) {
  if (inFirefox && !isLong) return;
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(packages()("axe-core").source);
  const violations = await page.evaluate(async (part) => {
    const found = await globalThis.axe.run(part ?? document, { resultTypes: ["violations"] });
    return found.violations.map(({ id, impact, help, nodes }) => ({
      id,
      impact,
      help,
      nodes: nodes.map((one) => `${one.target.join(" ")}: ${one.failureSummary}`),
    }));
  }, within);
  const bad = violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const told = bad.map(
    (one) => `${one.impact} ${one.id}: ${one.help}\n  ${one.nodes.join("\n  ").replace(/\n +/g, "\n    ")}`,
  );
  assert.equal(bad.length, 0, `at ${page.url()}\n${told.join("\n")}`);
}

/** The texts of a table by row, starting with the head; hidden tables, too. Every chart has a table of its data. */
export async function tableOf(locator) {
  const table =
    (await locator.evaluate((node) => node.tagName)) === "TABLE" ? locator : locator.locator("table").first();
  return table.evaluate((node) => [...node.rows].map((row) => [...row.cells].map((one) => one.textContent.trim())));
}

/** A number as the page writes it: "1,234", "1.05%", "3.2e-7". */
export function numberOf(text) {
  const n = Number(text.replace(/[\s,%]/g, ""));
  assert(!Number.isNaN(n), `no number: ${text}`);
  return text.includes("%") ? Number((n / 100).toPrecision(12)) : n; // 1.93 / 100 is not 0.0193
}

/** The page's texts: words("zh")("learn.add", { key: "Madrid" }) is "加入 Madrid". Without values, placeholders stay. */
export function words(language) {
  const texts = JSON.parse(fs.readFileSync(path.join(source, `playground/page/src/texts/${language}.json`), "utf8"));
  return (name, values = {}) => {
    assert(name in texts, `no text ${name}`);
    return texts[name].replace(/\{(\w+)\}/g, (all, key) => (key in values ? String(values[key]) : all));
  };
}

/** The values of a text's placeholders: valuesOf("{n} keys", "12 keys") is { n: "12" }. */
export function valuesOf(open, text) {
  const names = [];
  const pattern = open
    .replace(/[.*+?^$()|[\]\\]/g, "\\$&")
    .replace(/\{(\w+)\}/g, (_, name) => (names.push(name), "(.+?)"));
  const found = new RegExp(`^${pattern}$`, "s").exec(text);
  assert(found, `this is not "${open}": ${text}`);
  return Object.fromEntries(names.map((name, i) => [name, found[i + 1]]));
}

/** Asserts that the page is no wider than the window. */
export async function noSidewaysScrolling(page) {
  const { wide, window, culprits } = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const out = [...document.body.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > width + 1);
    return {
      wide: document.documentElement.scrollWidth,
      window: width,
      culprits: out.slice(0, 8).map((one) => `${one.tagName.toLowerCase()}.${one.className}`),
    };
  });
  assert(wide <= window, `${page.url()} is ${wide} px wide in a window of ${window}: ${culprits.join(", ")}`);
}

/**
 * Presses Tab, or Shift+Tab towards an element above, until the element has the focus. It must be reachable without a
 * mouse. Tab never leaves the page: in Firefox, the focus would move to the toolbar, where no test can press a key.
 */
export async function tabTo(page, locator) {
  for (let i = 0; i < 200; ++i) {
    const [has, above] = await locator.evaluate((node) => [
      node === document.activeElement,
      (node.compareDocumentPosition(document.activeElement) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0,
    ]);
    if (has) return;
    await page.keyboard.press(above ? "Shift+Tab" : "Tab");
  }
  assert.fail(`${locator} cannot be reached by Tab`);
}
