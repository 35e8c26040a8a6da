// Numbers as people read them.
import type { Key } from "./api";
import { currentLanguage } from "./words.svelte";

/** 1234567 as "1 234 567", with thin spaces that no line breaks at. */
export function count(n: number): string {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** 0.0105 as "1.05 %", 8.6e-7 as "0.000086 %"; what has too many zeros to count as "3.2e-13". */
export function percent(rate: number): string {
  if (rate === 0) return "0 %";
  if (rate < 1e-10) return rate.toExponential(1);
  const share = Number((100 * rate).toPrecision(3));
  return `${share < 1e-6 ? share.toFixed(12).replace(/0+$/, "") : share}\u202f%`;
}

/** In how many one is found: 0.0105 as "95", 8.6e-7 as "1.16 million" or in the words of the page's language. */
export function oneIn(rate: number): string {
  const n = 1 / rate;
  if (n < 10) return String(Number(n.toPrecision(2)));
  if (n < 1e6) return count(n);
  if (n >= 1e15) return n.toExponential(1);
  const words = { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 3 } as const;
  return new Intl.NumberFormat(currentLanguage(), words).format(n);
}

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    ++unit;
  }
  return `${Number(n.toPrecision(3))}\u202f${units[unit]}`;
}

/** A key as text: control characters are shown, never interpreted. */
export function shown(key: Key): string {
  if (typeof key !== "string") return `base64:${key.base64}`;
  return key.replace(
    /[\u0000-\u001f\u007f]/g,
    (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`,
  );
}

/** The same, of a long key its beginning and its end. */
export function brief(key: Key): string {
  const text = shown(key);
  return text.length <= 200 ? text : `${text.slice(0, 140)}…${text.slice(-40)}`;
}
