// DuckDB reads Bloom filters of bloomery: a filter of a Parquet file is replaced in place, and DuckDB then gives the
// answers of the new one. Without the npm package @duckdb/node-api, the test is skipped.
//
//   npm install @duckdb/node-api && node .../tests/formats/parquet_duckdb.mjs    in any folder
//
// Environment: PARQUET_PATCH, the program of parquet_patch.cpp; without it, the test compiles the program
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

let DuckDBInstance;
try {
  ({ DuckDBInstance } = createRequire(path.resolve("any.js"))("@duckdb/node-api"));
} catch {
  console.log("SKIP: @duckdb/node-api is not installed in this folder: npm install @duckdb/node-api");
  process.exit(77);
}

const source = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bloomery-"));
process.on("exit", () => fs.rmSync(folder, { recursive: true }));

function compiled() {
  const program = path.join(folder, "parquet_patch");
  const sources = [
    "tests/formats/parquet_patch.cpp",
    ...["parquet_footer", "parquet_value", "thrift_compact"].map((name) => `src/formats/${name}.cpp`),
    ...["error", "hint", "new_file", "posix"].map((name) => `src/platform/${name}.cpp`),
  ];
  const compiler = process.env.CXX ?? "c++";
  execFileSync(compiler, ["-std=c++20", "-O1", "-Iinclude", "-Isrc", ...sources, "-o", program], { cwd: source });
  return program;
}
const program = process.env.PARQUET_PATCH ?? compiled();
const patch = (file, column, group, verb, keys) =>
  execFileSync(program, [file, column, group, verb], { input: keys.map((key) => `${key}\n`).join("") }).toString();

const instance = await DuckDBInstance.create(":memory:");
const duckdb = await instance.connect();
// DuckDB keeps parts of files in memory, and does not notice a change within the same second.
await duckdb.run("SET enable_external_file_cache = false");
const rowsOf = async (sql) => (await duckdb.runAndReadAll(sql)).getRowObjects();
console.log("DuckDB", (await rowsOf("SELECT version() AS v"))[0].v);

let files = 0;
async function newFile() {
  const file = path.join(folder, `${++files}.parquet`);
  await duckdb.run(`
    COPY (SELECT 'user' || (i % 150 + g * 1000) AS s, (i % 150 + g * 1000)::BIGINT AS b, (i % 150 + g * 1000)::INTEGER AS n,
                 (i % 150 + g * 1000 + 0.5)::DOUBLE AS d, (i % 150 + g * 1000 + 0.5)::FLOAT AS f
          FROM (SELECT i, i // 2048 AS g FROM range(2 * 2048) r(i)))
    TO '${file}' (FORMAT parquet, ROW_GROUP_SIZE 2048, BLOOM_FILTER_FALSE_POSITIVE_RATIO 0.01)`);
  return file;
}

/// For each key a digit: 1 if DuckDB does not exclude the row group.
async function answersOf(file, column, group, type, keys) {
  let digits = "";
  for (const key of keys) {
    const rows = await rowsOf(`SELECT * FROM parquet_bloom_probe('${file}', '${column}', '${key}'::${type})`);
    digits += rows.find((row) => Number(row.row_group_id) === group).bloom_filter_excludes ? "0" : "1";
  }
  return digits;
}

const numbers = Array.from({ length: 2000 }, (_, i) => 5000 + i);
const columns = [
  ["s", "VARCHAR", (i) => `user${i}`],
  ["b", "BIGINT", (i) => `${i}`],
  ["n", "INTEGER", (i) => `${-i}`],
  ["d", "DOUBLE", (i) => `${i}.25`],
  ["f", "FLOAT", (i) => `${i}.75`],
];

for (const [column, type, keyOf] of columns) {
  test(`DuckDB gives the answers of a filter that bloomery wrote for a column of type ${type}`, async () => {
    const file = await newFile();
    const keys = numbers.map(keyOf);
    const present = keys.slice(0, 150);
    const neighbor = await answersOf(file, column, 1, type, keys.slice(0, 300));
    assert.ok((await answersOf(file, column, 0, type, present)).includes("0"), "the old filter has other keys");

    patch(file, column, 0, "insert", present);

    const answers = await answersOf(file, column, 0, type, keys);
    const expected = patch(file, column, 0, "lookup", keys);
    assert.deepEqual(keys.filter((_, i) => answers[i] !== expected[i]), []);
    assert.deepEqual(present.filter((_, i) => answers[i] !== "1"), []);
    const falsePositives = answers.slice(150).split("1").length - 1;
    assert.ok(falsePositives < 60, `${falsePositives} false positives among 1850 keys`);
    console.log(`${column} ${type}: 150 keys present, ${falsePositives} false positives among 1,850 absent keys`);
    assert.equal(await answersOf(file, column, 1, type, keys.slice(0, 300)), neighbor, "the other filter is unchanged");
  });
}

test("A query skips the row groups that a filter of bloomery excludes", async () => {
  const file = await newFile();
  const count = async () => Number((await rowsOf(`SELECT count(*) AS n FROM '${file}' WHERE s = 'user77'`))[0].n);
  assert.equal(await count(), 14);

  patch(file, "s", 0, "insert", ["user1", "user2"]);
  assert.equal(await count(), 0, "the row group is skipped, although it has the key");

  patch(file, "s", 0, "insert", ["user77"]);
  assert.equal(await count(), 14);
});
