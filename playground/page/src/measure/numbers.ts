// Large round numbers in short form, in the reader's language: "28.5M", "2850万".
import { count } from "../lib/numbers";
import { typedNumber, typedNumbers, typedParts } from "../lib/typed";
import { currentLanguage, t } from "../lib/words.svelte";

export function short(n: number): string {
  return new Intl.NumberFormat(currentLanguage() === "zh" ? "zh-Hans" : "en", {
    notation: "compact",
    maximumSignificantDigits: 3,
  }).format(n);
}

/** 2.345 as "2.3". */
export function rough(n: number, digits = 2): string {
  return String(Number(n.toPrecision(digits)));
}

/** 18.823 as "18.8", 0.5361 as "0.54". */
export function nanoseconds(n: number): string {
  return String(Number(n.toFixed(n < 1 ? 2 : 1)));
}

/** The powers of ten in a range, as ticks of a log axis. */
export function powers(from: number, to: number): number[] {
  const all: number[] = [];
  for (let e = Math.ceil(Math.log10(from) - 1e-9); 10 ** e <= to; ++e) all.push(10 ** e);
  return all;
}

/** "1 key", "1,000 keys". */
export function keysOf(n: number): string {
  return t(n === 1 ? "measure.keys.one" : "measure.keys", { keys: count(n) });
}

/** The filter's own number of keys and those of a list, which may be empty, in ascending order. */
export function sizesOf(own: number, text: string): number[] {
  const others = text.trim() === "" ? [] : typedNumbers(text);
  return [...new Set([own, ...others])].sort((a, b) => a - b);
}

/** The error message for a list with an invalid number. */
export function noNumber(text: string): string | undefined {
  if (text.trim() === "") return undefined;
  const wrong = typedParts(text).find((one) => !Number.isFinite(typedNumber(one)));
  if (wrong === undefined) return undefined;
  return wrong.trim() === "" ? t("measure.typed.missing") : t("measure.typed.none", { typed: wrong.trim() });
}
