// Answers of the API for filters that are too large to build in a test: inspections and experiments of up to 10^9 keys,
// in the form of docs/playground-api.md.

const bits = (keys) => Math.max(512, Math.ceil((10.4 * keys) / 512) * 512);
const bell = (x, mean, deviation) =>
  Math.exp(-((x - mean) ** 2) / (2 * deviation ** 2)) / (deviation * Math.sqrt(2 * Math.PI));

function params(keys, other = {}) {
  return {
    ...{ layout: "split_block512", scheme: null, hash: "xxh3", family: "plain", keys: "bytes", seed: "0" },
    ...{ bits: bits(keys), probes: 8, capacity: keys, rate: 0.01, block_cells: 512, cell_bits: 1, cells: bits(keys) },
    ...{ first_number: 0, window_keys: 0, window_milliseconds: 0 },
    ...other,
  };
}

/** An inspection of a file with as many keys as its capacity. */
export function inspection(keys, { blocks = bits(keys) / 512, ...other } = {}) {
  const cells = blocks * 512;
  const filter = params(keys, { bits: cells, cells });
  const ones = Math.round(cells * 0.5073);
  const width = Math.ceil(cells / 512 / 4096) * 512;
  const ranges = Math.ceil(cells / width);
  const spread = 0.3 / Math.sqrt(width);
  const expected = Array.from({ length: 513 }, (_, i) => blocks * bell(i, 259.7, 9));
  const rate = 0.0101;
  return {
    ...{ number: 0, name: "seen.bloom", kind: "file", version: 1, state: "ready", done: 1 },
    ...{ error: null, failed_at: null, changed_at: 1795328109728 },
    ...{
      filter,
      file_bytes: cells / 8 + 4096,
      clean: true,
      note: `sessions of one day, ${keys} keys`,
      expires_at: null,
    },
    verdict: { level: "watch", code: "full", text: "the filter is full" },
    ...{ promised: 0.01, certified: rate, predicted: 0.00998, keys },
    measured: { rate: 0.01012, low: 0.00952, high: 0.01076, queries: 100_000 },
    facts: {
      ...{ keys: null, counted: keys, estimated: { value: 1.0001 * keys, sigma: Math.sqrt(keys) }, ones, cells },
      ...{ fill: ones / cells, certified: rate, predicted: 0.00998, promised: 0.01, keys_left: 0, alarm: null },
      layers: [{ first_cell: 0, cells, capacity: keys, keys, ones, share: rate }],
      window: null,
    },
    heat: {
      cells_of_range: width,
      ones: Array.from({ length: ranges }, (_, i) =>
        Math.round(Math.min(width, cells - i * width) * (0.5073 + spread * Math.sin(i * i))),
      ),
      read: null,
    },
    histogram: {
      ...{ block_cells: 512, cells_of_bin: 1, blocks: expected.map(Math.round), expected, chance: 0.4, fits: true },
    },
    forecast: [10, 25, 50, 100].map((more) => ({
      ...{ more_percent: more, keys: Math.round(keys * (1 + more / 100)), rate: 0.0101 * (1 + more / 100) ** 4 },
    })),
    ...{ growth: null, shards: null, nodes: null },
    ...other,
  };
}

/** A scalable filter in 4096 shards on six servers. */
export function sharded(keys) {
  const one = inspection(keys);
  const layers = Array.from({ length: 12 }, (_, i) => ({
    first_cell: 0,
    cells: Math.ceil((one.facts.cells * 2 ** i) / 4096),
    capacity: Math.ceil((keys * 2 ** i) / 4096),
    keys: Math.ceil((keys * 2 ** i) / 4100),
    ones: Math.ceil((one.facts.ones * 2 ** i) / 4096),
    share: 0.01 / 2 ** (12 - i),
  }));
  const node = (i) => `filters-${i % 6}.eu-central.example.org:6379`;
  const cells = Math.ceil(one.facts.cells / 4096);
  return {
    ...one,
    ...{ kind: "redis", name: "redis://filters.example.org/seen", file_bytes: null, forecast: null },
    filter: { ...one.filter, family: "growing" },
    facts: { ...one.facts, layers },
    growth: { most_keys: 4096 * keys },
    shards: Array.from({ length: 4096 }, (_, i) => ({
      shard: i,
      node: node(i),
      layers: 12,
      ones: Math.ceil(cells / 2) + i,
      cells,
    })),
    nodes: Array.from({ length: 6 }, (_, i) => ({
      ...{ node: node(i), shards: 683, layers: 8196, ones: 683 * cells, cells: 1366 * cells },
    })),
  };
}

const rateAt = (keys, n, rate, probes) => ((1 - Math.exp((-keys / n) * Math.LN2)) * 2) ** probes * rate;

/** The result of a finished experiment. */
const results = {
  analysis({ filter: { capacity: n, rate }, runs }) {
    const at = Array.from({ length: 15 }, (_, i) => Math.round(((i + 1) * n) / 10));
    const theory = [0, ...at].map((keys) => ({ keys, rate: Math.min(1, rateAt(keys, n, rate, 7)) }));
    const points = at.map((keys, i) => {
      const { rate: predicted } = theory[i + 1];
      const rates = Array.from({ length: runs }, (_, run) => predicted * (1 + 0.2 * Math.sin(7 * i + run)));
      return { keys, predicted, mean: predicted * 1.01, deviation: predicted * 0.15, rates };
    });
    const filter = params(n, { layout: "classic", block_cells: 0, rate, probes: 7 });
    return { filter, runs, queries: Math.ceil(100 / rate), seed: "0", points, theory };
  },
  benchmark({ sizes }) {
    const rates = (keys) => [3.21e8, 1e9 / keys, 2.5e7, 1.234e8 / Math.log2(keys + 2)];
    const bar = (structure, median) => ({
      structure,
      lookups_per_second: median,
      low: 0.8 * median,
      high: 1.3 * median,
    });
    return {
      rounds: 9,
      sizes: sizes.map((keys) => ({
        keys,
        bars: ["filter", "list", "sorted", "hash_set"].map((structure, i) => bar(structure, rates(keys)[i])),
      })),
    };
  },
  profile({ filter: { capacity: keys } }) {
    const parts = { hash: 3.14, probe: 0.5, memory: keys > 1e6 ? 123.4 : 0.02 };
    return {
      ...{ filter: params(keys), keys, bytes: bits(keys) / 8 },
      parts: Object.entries(parts).map(([part, nanoseconds]) => ({ part, nanoseconds })),
    };
  },
};

/** Answers inspections of filter 0 with `seen`; a request for a newer version gets no answer while the page is open. */
export async function answerInspections(page, seen) {
  await page.route("**/api/1/about", async (route) => {
    const about = await (await route.fetch()).json();
    const { number, name, kind } = seen;
    await route.fulfill({ json: { ...about, inspections: [{ number, name, kind }] } });
  });
  await page.route(/\/api\/1\/inspections\/0(\?.*)?$/, async (route) => {
    const after = Number(new URL(route.request().url()).searchParams.get("after") ?? 0);
    if (after < seen.version) await route.fulfill({ json: seen });
  });
  // An hour in which the filter was filled.
  await page.route(/\/api\/1\/inspections\/0\/history/, async (route) => {
    const at = (i) => Date.now() - 5000 * (720 - i);
    const sample = (i) => ({ at: at(i), keys: Math.round((seen.keys * i) / 720), rate: (seen.certified * i) / 720 });
    const samples = Array.from({ length: 721 }, (_, i) => sample(i));
    const { number, name, kind } = seen;
    await route.fulfill({ json: { number, name, kind, samples, keys_per_second: seen.keys / 3600, full_in: 3600 } });
  });
}

/** Answers experiments at once. */
export const answerJobs = (page) =>
  page.route("**/api/1/jobs", (route) => {
    const { kind, ...asked } = route.request().postDataJSON();
    const job = { id: "0".repeat(32), kind, state: "done", done: 1, total: 1, error: null };
    return route.fulfill({ status: 202, json: { ...job, result: results[kind](asked) } });
  });
