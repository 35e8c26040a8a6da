// A small filter encoded in a link: its parameters and up to 100 keys.
import type { Key, Wanted } from "./api";

const names = ["layout", "scheme", "hash", "seed"] as const;
const numbers = ["capacity", "rate", "bits", "probes", "window_keys", "window_milliseconds"] as const;

export const most_keys = 100;
/** Longer links may be truncated on their way. */
const most_characters = 6000;

/** Whether a link can hold all of these keys. */
export function fits(keys: Key[] | null): keys is string[] {
  return (
    keys !== null &&
    keys.length <= most_keys &&
    keys.every((key) => typeof key === "string" && key !== "" && key.length < most_characters) &&
    new URLSearchParams({ keys: keys.join(",,,") }).toString().length < most_characters
  );
}

export function toQuery(wanted: Wanted, keys: Key[] | null): Record<string, string> {
  const query: Record<string, string> = {};
  for (const name of [...numbers, ...names]) if (wanted[name] !== undefined) query[name] = String(wanted[name]);
  if (wanted.grows) query.grows = "true";
  if (fits(keys) && keys.length > 0) query.keys = keys.map((key) => key.replace(/[%,]/g, encodeURIComponent)).join(",");
  return query;
}

function plain(text: string): string {
  return text.replace(/%(25|2C)/gi, (c) => decodeURIComponent(c));
}

export function fromQuery(query: URLSearchParams): { wanted: Wanted; keys: string[] } | null {
  const wanted: Wanted = {};
  for (const name of names) if (query.get(name)) wanted[name] = query.get(name)!;
  for (const name of numbers) {
    const n = Number(query.get(name));
    if (query.get(name) && Number.isFinite(n)) wanted[name] = n;
  }
  if (query.get("grows") === "true") wanted.grows = true;
  if (Object.keys(wanted).length === 0) return null;
  const keys = query.get("keys");
  return { wanted, keys: keys ? keys.split(",").slice(0, most_keys).map(plain) : [] };
}
