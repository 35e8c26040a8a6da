// Numbers typed into fields, converted for the API or rejected with a reason.
import type { Word } from "./words.svelte";

/** Accepts "5%", "0.05", "1,000,000" and "1 000 000". Any other text is returned unchanged. */
export function typedNumber(text: string): number {
  const trimmed = text.trim();
  const share = trimmed.endsWith("%");
  const plain = (share ? trimmed.slice(0, -1).trim() : trimmed).replace(/[\s\u2009_]/g, "");
  const digits = /^\d{1,3}(,\d{3})+$/.test(plain) ? plain.replaceAll(",", "") : plain;
  const n = digits === "" ? NaN : Number(digits);
  return (Number.isNaN(n) ? text : share ? Number((n / 100).toPrecision(12)) : n) as number;
}

/** "10, 1000000": a comma always separates two numbers here. */
export function typedNumbers(text: string): number[] {
  return text.split(/[,，、;]/).map(typedNumber);
}

/** The text to show if a typed number is not valid for its kind; null: valid as far as the page can tell. */
export function mistake(n: unknown, kind: "whole" | "rate" | "seconds"): Word | null {
  const right =
    typeof n === "number" &&
    (kind === "rate" ? n > 0 && n < 1 : kind === "whole" ? n >= 1 && Number.isInteger(n) : n > 0);
  return right ? null : `typed.${kind}`;
}
