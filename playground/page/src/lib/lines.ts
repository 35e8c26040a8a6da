// Splits many keys into API calls, within the limits on count and length.
import type { About, Key } from "./api";

type Limits = About["limits"];

/** Upper bound on the bytes of a key in JSON: a UTF-16 unit takes at most six ("\u0000"). */
function room(key: Key): number {
  const text = typeof key === "string" ? key : key.base64;
  return (text.length < 1000 ? 6 * text.length : new TextEncoder().encode(JSON.stringify(text)).length) + 20;
}

/** Collects keys into calls. */
export class Calls {
  #call: Key[] = [];
  #bytes = 0;
  readonly #most: number;
  constructor(private readonly limits: Limits) {
    this.#most = limits.body_bytes - 1024;
  }

  /** Adds a key; returns the full call if the key does not fit into it. */
  push(key: Key): Key[] | null {
    const bytes = room(key);
    const full = this.#call.length === this.limits.keys_of_call || this.#bytes + bytes > this.#most;
    const call = full && this.#call.length > 0 ? this.rest() : null;
    this.#call.push(key);
    this.#bytes += bytes;
    return call;
  }

  rest(): Key[] {
    const call = this.#call;
    this.#call = [];
    this.#bytes = 0;
    return call;
  }
}

/** A call, and the progress after it: `done` of the units of the whole. */
export interface Part {
  keys: Key[];
  done: number;
}

/** The non-empty lines of pasted text. */
export function linesOf(text: string): string[] {
  return text.split(/\r?\n/).filter((one) => one !== "");
}

export function* callsOf(keys: Key[], limits: Limits): Generator<Part> {
  const calls = new Calls(limits);
  for (let i = 0; i < keys.length; ++i) {
    const call = calls.push(keys[i]!);
    if (call) yield { keys: call, done: i };
  }
  yield { keys: calls.rest(), done: keys.length };
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The non-empty lines of a byte array. A line that is not UTF-8 becomes a key of bytes. */
function keysOf(bytes: Uint8Array): Key[] {
  try {
    return linesOf(strict.decode(bytes));
  } catch {
    if (!bytes.includes(10)) return [{ base64: btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join("")) }];
  }
  const keys: Key[] = [];
  for (let from = 0; from < bytes.length;) {
    const found = bytes.indexOf(10, from);
    const to = found < 0 ? bytes.length : found;
    const end = to > from && bytes[to - 1] === 13 ? to - 1 : to;
    if (end > from) keys.push(...keysOf(bytes.subarray(from, end)));
    from = to + 1;
  }
  return keys;
}

/** The lines of a file of any size, read in pieces. */
export async function* callsOfFile(file: Blob, limits: Limits, piece = 1 << 20): AsyncGenerator<Part> {
  const calls = new Calls(limits);
  let rest = new Uint8Array();
  for (let at = 0; at < file.size; at += piece) {
    const read = new Uint8Array(await file.slice(at, at + piece).arrayBuffer());
    const bytes = new Uint8Array(rest.length + read.length);
    bytes.set(rest);
    bytes.set(read, rest.length);
    // A line that is too long for any call is sent anyway, for the API's error message.
    const last = at + piece >= file.size || bytes.length > limits.body_bytes;
    const end = last ? bytes.length : bytes.lastIndexOf(10) + 1;
    rest = bytes.slice(end);
    for (const key of keysOf(bytes.subarray(0, end))) {
      const call = calls.push(key);
      if (call) yield { keys: call, done: at };
    }
  }
  yield { keys: calls.rest(), done: file.size };
}
