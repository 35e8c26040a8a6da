// A filter in a link: its parameters, and the steps that lead to its bits.
//
// A few keys are readable: keys=Madrid,Barcelona. All other steps are JSON, compressed by DEFLATE, in base64url.
import type { Key, Step, Wanted } from "./api";

const names = ["layout", "scheme", "hash", "seed"] as const;
const numbers = ["capacity", "rate", "bits", "probes", "window_keys", "window_milliseconds"] as const;

/** Bytes of keys that may be worth compressing for a link. */
export const most_key_bytes = 300_000;

/** Longer links are refused by some programs that pass links on. */
const most_characters = 30_000;
const most_readable = 2000;
const most_readable_keys = 100;

/** The decompressed steps: no more than a request may have. */
const most_json_bytes = 16_000_000;

/** Readable keys, if the steps only insert a few strings. */
function readable(steps: Step[]): string | null {
  const keys: Key[] = [];
  for (const step of steps) {
    if (!("keys" in step) || keys.length + step.keys.length > most_readable_keys) return null;
    keys.push(...step.keys);
  }
  if (!keys.every((key) => typeof key === "string" && key !== "")) return null;
  const text = keys.map((key) => (key as string).replace(/[%,]/g, encodeURIComponent)).join(",");
  return new URLSearchParams({ keys: text }).toString().length <= most_readable ? text : null;
}

/** The parameters of a filter as a query. */
export function parameters(wanted: Wanted): Record<string, string> {
  const query: Record<string, string> = {};
  for (const name of [...numbers, ...names]) if (wanted[name] !== undefined) query[name] = String(wanted[name]);
  if (wanted.grows) query.grows = "true";
  return query;
}

/** A filter as a query. `whole`: it has the steps, too; they may be unknown (null) or too many. */
export async function toQuery(
  wanted: Wanted,
  steps: Step[] | null,
): Promise<{ query: Record<string, string>; whole: boolean }> {
  const query = parameters(wanted);
  if (!steps) return { query, whole: false };
  if (steps.length === 0) return { query, whole: true };
  const keys = readable(steps);
  if (keys !== null) return { query: { ...query, keys }, whole: true };
  const text = await packed(JSON.stringify(steps));
  return text.length > most_characters ? { query, whole: false } : { query: { ...query, steps: text }, whole: true };
}

/** The parameters in a query; null: it describes no filter. */
export function wantedFrom(query: URLSearchParams): Wanted | null {
  const wanted: Wanted = {};
  for (const name of names) if (query.get(name)) wanted[name] = query.get(name)!;
  for (const name of numbers) {
    const n = Number(query.get(name));
    if (query.get(name) && Number.isFinite(n)) wanted[name] = n;
  }
  if (query.get("grows") === "true") wanted.grows = true;
  return Object.keys(wanted).length === 0 ? null : wanted;
}

/** Null: the query describes no filter. Throws if its steps cannot be read. */
export async function fromQuery(query: URLSearchParams): Promise<{ wanted: Wanted; steps: Step[] } | null> {
  const wanted = wantedFrom(query);
  if (!wanted) return null;
  const steps = query.get("steps");
  if (steps) return { wanted, steps: JSON.parse(await unpacked(steps)) as Step[] };
  const keys = query.get("keys");
  return { wanted, steps: keys ? [{ keys: keys.split(",").map(plain) }] : [] };
}

function plain(text: string): string {
  return text.replace(/%(25|2C)/gi, (c) => decodeURIComponent(c));
}

async function packed(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

async function unpacked(text: string): Promise<string> {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (let size = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(pieces).text();
    size += value.length;
    if (size > most_json_bytes) throw new Error("too long");
    pieces.push(value as Uint8Array<ArrayBuffer>);
  }
}
