// Many keys in calls that the API takes: neither too many of them nor too long.
import type { About, Key } from "./api";

type Limits = About["limits"];

/** Bytes of a key in JSON, at most: each UTF-16 unit is at most six ("\u0000"). */
function room(key: Key): number {
  const text = typeof key === "string" ? key : key.base64;
  return (text.length < 1000 ? 6 * text.length : new TextEncoder().encode(JSON.stringify(text)).length) + 20;
}

/** Gathers keys and gives them away by the call. */
export class Calls {
  #call: Key[] = [];
  #bytes = 0;
  readonly #most: number;
  constructor(private readonly limits: Limits) {
    this.#most = limits.body_bytes - 1024;
  }

  /** The call that is full now, if the key no longer fits into it. */
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

/** A call, and how far in the whole it comes: after `done` of the units that the whole has. */
export interface Part {
  keys: Key[];
  done: number;
}

/** The lines of a text that was pasted, empty ones left out. */
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

/** Lines of bytes. What is no UTF-8 is a key of bytes. */
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

/** The lines of a file of any size: it is read in pieces, and never held as a whole. */
export async function* callsOfFile(file: Blob, limits: Limits, piece = 1 << 20): AsyncGenerator<Part> {
  const calls = new Calls(limits);
  let rest = new Uint8Array();
  for (let at = 0; at < file.size; at += piece) {
    const read = new Uint8Array(await file.slice(at, at + piece).arrayBuffer());
    const bytes = new Uint8Array(rest.length + read.length);
    bytes.set(rest);
    bytes.set(read, rest.length);
    // A line that no call can hold is sent all the same: the API says what is wrong with it.
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
