// The page's texts in all languages. Needs no browser.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";

const folder = new URL("../../playground/page/src/texts/", import.meta.url);
const textsOf = (name) => JSON.parse(fs.readFileSync(new URL(name, folder), "utf8"));
const english = textsOf("en.json");
const others = fs.readdirSync(folder).filter((name) => name !== "en.json");
const open = (text) => new Set(text.match(/\{\w*\}/g));

test("All languages have the same names, in the same order", () => {
  assert(others.includes("zh.json"));
  for (const name of others) assert.deepEqual(Object.keys(textsOf(name)), Object.keys(english), name);
});

test("Each text has the placeholders of its English text", () => {
  for (const name of others) {
    for (const [key, text] of Object.entries(textsOf(name)))
      assert.deepEqual(open(text), open(english[key]), `${name}: ${key}`);
  }
});

test("Texts are not empty and contain no markup", () => {
  for (const name of ["en.json", ...others]) {
    for (const [key, text] of Object.entries(textsOf(name))) {
      assert(text !== "" || key === "story.between", `${name}: ${key} is empty`);
      assert.doesNotMatch(text, /<\/?[a-z]|&\w+;/i, `${name}: ${key}`);
      assert(/^\{\w+\}$/.test(text) || !/\{(?!\w+\})|\{\w*$/.test(text), `${name}: ${key} has a stray brace`);
    }
  }
});

test("No sentence in the Chinese texts is in English", () => {
  const bare = Object.entries(textsOf("zh.json")).filter(
    ([key, text]) => text === english[key] && /[a-z]{2} [a-z]{2}/i.test(text),
  );
  assert.deepEqual(bare, []);
});

test("Chinese texts have Chinese punctuation between Chinese words", () => {
  for (const [key, text] of Object.entries(textsOf("zh.json")))
    assert.doesNotMatch(text, /\p{Script=Han} ?[,;:?!]/u, key);
});

test("Chapters 1 to 4 take a first-time reader less than three minutes", () => {
  // Without what follows the offer to add cities until a key is a false positive.
  const chapters = /^learn\.[1-4]\.(?!title$|until\.)/;
  const answers = "no added added shared no false".split(" ").map((name) => `learn.said.${name}`);
  const labels = ["learn.do", "learn.rule"].flatMap((name) => [name, name, name, name]);
  const read = [...Object.keys(english).filter((name) => chapters.test(name)), ...answers, ...labels];
  const words = read.map((name) => english[name].match(/[\p{L}\p{N}{}’.%]+/gu).length).reduce((sum, n) => sum + n);
  const actions = 9; // three lookups, two keys added, one question, three times Next
  const seconds = (60 * words) / 230 + 5 * actions;
  assert(words > 300 && seconds < 180, `${words} words and ${actions} actions take ${seconds.toFixed()} s`);
});
