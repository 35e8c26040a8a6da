// JSON files of the filters of npm packages: bloom-filters and bloomfilter.
//
//   npm install --prefix DIR bloom-filters@3.0.4 bloomfilter@1.1.0; export NODE_PATH=DIR/node_modules
//   node npm_filters.cjs write PACKAGE FILE N P [SEED] < keys    writes a filter
//   node npm_filters.cjs check FILE < keys                       prints 1 or 0 per key
//   node npm_filters.cjs rewrite FILE < keys                     reads a filter, adds the keys and writes it again
//   node npm_filters.cjs sizes < lines                           per line "N P": the sizes of both packages
//
// Keys are lines. Invalid UTF-8 becomes U+FFFD.
const fs = require("node:fs");

const lines = fs.readFileSync(0).toString("utf8").split("\n").slice(0, -1);
const [command, ...rest] = process.argv.slice(2);
const { BloomFilter } = require("bloom-filters");

async function main() {
  // The package is an ES module, which import() does not find on NODE_PATH.
  const { BloomFilter: Davies } = await import(require.resolve("bloomfilter"));
  const packages = {
    "bloom-filters": {
      create: (n, p) => BloomFilter.create(n, p),
      read: (value) => BloomFilter.fromJSON(value),
      value: (filter) => filter.saveAsJSON(),
      test: (filter, key) => filter.has(key),
      size: (filter) => [filter._size, filter._nbHashes],
    },
    bloomfilter: {
      create: (n, p) => Davies.withTargetError(n, p),
      read: (value) => Davies.fromJSON(value),
      value: (filter) => filter.toJSON(),
      test: (filter, key) => filter.test(key),
      size: (filter) => [filter.m, filter.k],
    },
  };

  function write(library, filter, file) {
    for (const key of lines) filter.add(key);
    fs.writeFileSync(file, JSON.stringify(library.value(filter)));
  }

  function read(file) {
    const value = JSON.parse(fs.readFileSync(file, "utf8"));
    const library = packages["type" in value ? "bloom-filters" : "bloomfilter"];
    return [library, library.read(value)];
  }

  if (command === "write") {
    const [name, file, n, p, seed] = rest;
    const filter = packages[name].create(Number(n), Number(p));
    if (seed !== undefined) filter.seed = Number(seed);
    write(packages[name], filter, file);
  } else if (command === "rewrite") {
    write(...read(rest[0]), rest[0]);
  } else if (command === "check") {
    const [library, filter] = read(rest[0]);
    console.log(lines.map((key) => Number(library.test(filter, key))).join("\n"));
  } else {
    const sizes = (n, p) => Object.values(packages).flatMap((library) => library.size(library.create(n, p)));
    console.log(lines.map((line) => [line, ...sizes(...line.split(" ").map(Number))].join(" ")).join("\n"));
  }
}

main();
