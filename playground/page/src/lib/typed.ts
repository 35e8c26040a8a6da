// What was typed into a field as the API takes it, or why it does not.
import type { Word } from "./words.svelte";

/** "5 %", "0.05", "1 000 000"; what is no number stays as it is. */
export function typedNumber(text: string): number {
  const trimmed = text.trim();
  const share = trimmed.endsWith("%");
  const digits = (share ? trimmed.slice(0, -1).trim() : trimmed).replace(/[\s\u2009_]/g, "");
  const n = digits === "" ? NaN : Number(digits);
  return (Number.isNaN(n) ? text : share ? Number((n / 100).toPrecision(12)) : n) as number;
}

/** "10, 1 000 000": a number between two commas. */
export function typedNumbers(text: string): number[] {
  return text.split(/[,，、;]/).map(typedNumber);
}

/** What to say of a typed number that cannot be one of its kind; null: the API may have it. */
export function mistake(n: unknown, kind: "whole" | "rate" | "seconds"): Word | null {
  const right =
    typeof n === "number" &&
    (kind === "rate" ? n > 0 && n < 1 : kind === "whole" ? n >= 1 && Number.isInteger(n) : n > 0);
  return right ? null : `typed.${kind}`;
}
