// Numbers, sizes and keys formatted as text.
import type { Key } from "./api";
import { currentLanguage, t } from "./words.svelte";

/** 1234567 as "1,234,567". */
export function count(n: number): string {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** 0.0105 as "1.05%", 8.6e-7 as "0.000086%"; rates below 1e-10 as "3.2e-13". */
export function percent(rate: number): string {
  if (rate === 0) return "0%";
  if (rate < 1e-10) return rate.toExponential(1);
  const share = Number((100 * rate).toPrecision(3));
  return `${share < 1e-6 ? share.toFixed(12).replace(/0+$/, "") : share}%`;
}

/** Writes rates in a range with as many digits as it takes to tell its ends apart: 50.7212% and 50.7238%. */
export function percentBetween(least: number, most: number): (rate: number) => string {
  const digits = Math.min(8, 1 - Math.floor(Math.log10(100 * (most - least))));
  const needed = most > least && digits > 3 - Math.max(1, Math.ceil(Math.log10(100 * most)));
  return needed ? (rate) => `${(100 * rate).toFixed(digits)}%` : percent;
}

/**
 * The reciprocal of a rate: 0.0105 as "95", 8.6e-7 as "1.16 million", in the page's language. Empty for rates near 1
 * (above 1 in 1.5) and for tiny ones (below 1 in 10^15).
 */
export function reciprocal(rate: number): string {
  const n = 1 / rate;
  if (!(n >= 1.5 && n <= 1e15)) return "";
  if (n < 10) return String(Number(n.toPrecision(2)));
  if (n < 1e6) return count(n);
  const words = { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 3 } as const;
  return new Intl.NumberFormat(currentLanguage(), words).format(n);
}

/** 0.0105 as "1 in 95", or empty as above. */
export function oneIn(rate: number): string {
  const n = reciprocal(rate);
  return n === "" ? "" : t("facts.onein", { n });
}

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    ++unit;
  }
  return `${Number(n.toPrecision(3))}\u00a0${units[unit]}`;
}

/** A key as text; control characters are escaped. */
export function shown(key: Key): string {
  if (typeof key !== "string") return `base64:${key.base64}`;
  return key.replace(
    /[\u0000-\u001f\u007f]/g,
    (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`,
  );
}

/** A key as text; a long key is shortened to its beginning and its end. */
export function brief(key: Key): string {
  const text = shown(key);
  return text.length <= 200 ? text : `${text.slice(0, 140)}…${text.slice(-40)}`;
}
