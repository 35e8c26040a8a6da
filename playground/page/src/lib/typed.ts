// Numbers typed into fields, converted for the API or rejected with a reason.
import { count } from "./numbers";
import type { Word } from "./words.svelte";

/** Accepts "5%", "0.05", "1,000,000" and "1 000 000". Any other text is returned unchanged. */
export function typedNumber(text: string): number {
  const trimmed = text.trim();
  const share = trimmed.endsWith("%");
  const plain = (share ? trimmed.slice(0, -1).trim() : trimmed).replace(/[\s\u2009_]/g, "");
  const digits = ungrouped(plain);
  const n = digits === "" ? NaN : Number(digits);
  return (Number.isNaN(n) ? text : share ? Number((n / 100).toPrecision(12)) : n) as number;
}

/** "1,000,000" as "1000000"; the last group may be longer, because digits were added to it. Other text is unchanged. */
export function ungrouped(text: string): string {
  return /^\s*\d{1,3}(,\d{3})*,\d{3,}\s*$/.test(text) ? text.replaceAll(",", "") : text;
}

/** "1000000" as "1,000,000"; other text is returned unchanged. */
export function grouped(text: string): string {
  return /^\d{4,15}$/.test(text.trim()) ? count(Number(text)) : text;
}

/** The parts of a list: "10; 1,000,000" or "10, 1000000". A comma separates numbers only if no semicolon does. */
export function typedParts(text: string): string[] {
  return text.split(/[;；]/.test(text) ? /[;；]/ : /[,，、]/);
}

export function typedNumbers(text: string): number[] {
  return typedParts(text).map(typedNumber);
}

/** The text to show if a typed number is not valid for its kind; null: valid as far as the page can tell. */
export function mistake(n: unknown, kind: "whole" | "rate" | "seconds"): Word | null {
  const right =
    typeof n === "number" &&
    (kind === "rate" ? n > 0 && n < 1 : kind === "whole" ? n >= 1 && Number.isInteger(n) : n > 0);
  return right ? null : `typed.${kind}`;
}
