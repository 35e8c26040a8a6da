// The API of docs/playground-api.md with types. All facts about filters on the page come from it.
import { inspect, program, reader, served, type Reach } from "../host/host";
import { currentLanguage, t, type Word } from "./words.svelte";

export type Key = string | { base64: string };

export interface Wanted {
  layout?: string;
  scheme?: string;
  hash?: string;
  seed?: string;
  capacity?: number;
  rate?: number;
  bits?: number;
  probes?: number;
  window_keys?: number;
  window_milliseconds?: number;
  grows?: boolean;
}

export interface Params {
  layout: string | null;
  scheme: string | null;
  hash: string | null;
  family: "plain" | "counting" | "quotient" | "windowed" | "sealed" | "growing";
  keys: "bytes" | "u64";
  seed: string;
  bits: number;
  probes: number;
  capacity: number;
  rate: number;
  block_cells: number;
  cell_bits: number;
  cells: number;
  /** The number of the first cell: 1 if the original scheme counts from 1. */
  first_number: number;
  window_keys: number;
  window_milliseconds: number;
}

export interface Layer {
  first_cell: number;
  cells: number;
  capacity: number;
  keys: number;
  ones: number;
  share: number;
}

export interface Facts {
  keys: number | null;
  counted: number | null;
  estimated: { value: number | null; sigma: number | null };
  ones: number;
  cells: number;
  fill: number;
  certified: number;
  predicted: number;
  promised: number;
  keys_left: number;
  alarm: string | null;
  layers: Layer[];
  window: {
    epoch: number;
    part: number;
    insertions: number;
    generations: { epoch: number; lane: number; keys: number }[];
  } | null;
}

export interface State {
  id: string;
  filter: Params;
  facts: Facts;
  steps: number;
  can_undo: boolean;
  truth: boolean;
  /** The number after those of the random addresses that were added. */
  next_address: number;
}

/** What was done with a filter. An insertion that joins the step before it is undone together with it. */
export type Step =
  | { keys: Key[]; joins?: true }
  | { addresses: { seed: string; first: number; count: number }; joins?: true }
  | { remove: Key; by_force: boolean }
  | { tick: number };

export interface Cell {
  cell: number;
  layer: number;
  value: number;
  again: boolean;
  new: boolean;
  owners: Key[];
  owner_count: number;
}

export interface KeyView {
  key: Key;
  answer: "maybe" | "no";
  truth: "added" | "never" | "removed" | "forgotten" | null;
  false_positive: boolean;
  hash: string | null;
  /** Modulo the number of cells, these are the cells; only for schemes that hash so. */
  numbers: number[] | null;
  block: number | null;
  cells: Cell[];
}

export interface Added {
  keys: KeyView[];
  count: number;
  new: number;
  state: State;
}

export interface Asked {
  keys: KeyView[];
  count: number;
  maybe: number;
  false_positives: number | null;
}

export interface Removed {
  result: "removed" | "not_found";
  cells: number[];
  lost: Key[];
  lost_count: number;
  state: State;
}

export interface Point {
  keys: number;
  rate: number;
}

/** Why the library takes a layout, or does not. */
export interface Why {
  ground: "needs_more" | "slower" | "only_one" | "quickest" | "impossible";
  than: string;
  more: number;
  within: number;
  allowed_percent: number;
  allowed_bytes: number;
  preferred_percent: number;
}

export interface Plan {
  filter: Params;
  rate: number;
  bits_a_key: number;
  bytes: number;
  command: string;
  cpp: string;
  curve: Point[];
  probes: { probes: number; rate: number; best?: true }[] | null;
  layouts:
    | {
        layout: string;
        possible: boolean;
        bits_a_key: number;
        rate: number;
        chosen: boolean;
        reason: string;
        why: Why;
      }[]
    | null;
}

export interface Fill {
  from: number;
  to: number;
  cells_of_range: number;
  ones: number[];
}

export interface Owners {
  cell: number;
  value: number;
  layer: number;
  owners: Key[];
  owner_count: number;
}

export interface Search {
  queries: number;
  hits: number;
  rate: number;
  low: number;
  high: number;
  found: Key[];
}

export interface Job<Result> {
  id: string;
  kind: string;
  state: "waiting" | "running" | "done" | "failed" | "cancelled";
  done: number;
  total: number;
  result: Result | null;
  error: Problem | null;
}

export interface Analysis {
  filter: Params;
  runs: number;
  queries: number;
  seed: string;
  points: Measured[];
  theory: Point[];
}

export interface Measured {
  keys: number;
  predicted: number;
  mean: number;
  deviation: number;
  /** One rate per finished run. */
  rates: number[];
}

export interface Bar {
  structure: "filter" | "list" | "sorted" | "hash_set";
  lookups_per_second: number;
  low: number;
  high: number;
}

export interface Benchmark {
  rounds: number;
  sizes: { keys: number; filter: Params; bars: Bar[] }[];
}

export interface Profile {
  filter: Params;
  keys: number;
  bytes: number;
  parts: { part: "hash" | "probe" | "memory"; nanoseconds: number }[];
}

export type Level = "good" | "watch" | "bad";

export interface Shard {
  shard: number;
  node: string;
  layers: number;
  ones: number;
  cells: number;
}

/** The result of reading a filter that was named on the command line. */
export interface Seen {
  filter: Params;
  file_bytes: number | null;
  clean: boolean;
  note: string;
  /** Milliseconds since 1970. */
  expires_at: number | null;
  verdict: { level: Level; code: string; text: string };
  promised: number;
  certified: number;
  predicted: number;
  keys: number;
  measured: { rate: number; low: number; high: number; queries: number } | null;
  facts: Omit<Facts, "keys_left"> & { keys_left: number | null };
  heat: { cells_of_range: number; ones: number[]; read: number[] | null } | null;
  histogram: {
    block_cells: number;
    cells_of_bin: number;
    blocks: number[];
    expected: number[] | null;
    chance: number | null;
    fits: boolean | null;
  } | null;
  forecast: { more_percent: number; keys: number; rate: number }[] | null;
  growth: { most_keys: number | null } | null;
  shards: Shard[] | null;
  nodes: { node: string; shards: number; layers: number; ones: number; cells: number }[] | null;
}

/** All fields of Seen are present after the first successful read, and stay when later reads fail. */
export interface Inspection extends Partial<Seen> {
  number: number;
  name: string;
  kind: "file" | "redis";
  version: number;
  state: "reading" | "ready" | "failed";
  done: number;
  error: Problem | null;
  failed_at: number | null;
  changed_at: number | null;
}

/** A reading of an inspected filter; null: it could not be read from then on. */
export interface Sample {
  /** Milliseconds since 1970. */
  at: number;
  keys: number | null;
  /** The exact FPR. */
  rate: number | null;
}

/** How an inspected filter changed during the last hour. */
export interface History {
  samples: Sample[];
  keys_per_second: number | null;
  /** Seconds. */
  full_in: number | null;
}

export interface About {
  version: string;
  api: number;
  kernel: string;
  threads: number;
  /** Another one with each start of the program. */
  session: string;
  layouts: { name: string; family: string; block_bits: number; cell_bits: number }[];
  schemes: { name: string; origin: string }[];
  hashes: string[];
  limits: {
    bits: number;
    keys: number;
    keys_of_call: number;
    owned_keys: number;
    key_bytes: number;
    body_bytes: number;
    file_bytes: number;
    jobs: number;
  };
  inspections: { number: number; name: string; kind: "file" | "redis" }[];
}

/** An error, as worded by the library. */
export interface Problem {
  code: string;
  what: string;
  where: string;
  expected: string;
  found: string;
  way_out: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(sentence(problem));
  }
}

/** Labels of the API's fields on the page. */
const labels: Record<string, Word> = {
  capacity: "play.capacity",
  rate: "play.rate",
  bits: "play.bits",
  probes: "play.probes",
  seed: "play.seed",
  hash: "play.hash",
  layout: "play.layout",
  scheme: "play.layout",
  window_keys: "play.window_keys",
  window_milliseconds: "play.window_milliseconds",
  count: "play.addresses.count",
  key: "key.label",
  keys: "key.label",
  runs: "measure.runs",
  queries: "measure.queries",
  sizes: "measure.sizes",
};

const codes = [
  "invalid_argument",
  "too_large",
  "not_found",
  "not_a_filter",
  "wrong_version",
  "damaged",
  "incompatible",
  "unavailable",
] as const;

/**
 * "FPR (p): invalid value: expected a number between 0 and 1, found 2; use 0.01 for 1%". In other languages, a sentence
 * of the page comes first, followed by the API's details in English.
 */
export function sentence(p: Problem): string {
  if (p === lost) return t("program.away");
  if (p === broken) return t("nav.failed");
  const english = currentLanguage() === "en";
  const name = p.where in labels ? t(labels[p.where]!) : p.where === "id" ? "" : p.where;
  const place = name && t("problem.at", { name });
  const facts = [p.expected && `expected ${p.expected}`, p.found && `found ${p.found}`].filter(Boolean).join(", ");
  // Hints about JSON do not apply to form fields.
  const way_out = /quotes|playground-api/.test(p.way_out) ? "" : p.way_out;
  if (english) return place + p.what + (facts && `: ${facts}`) + (way_out && `; ${way_out}`);
  const code = codes.find((one) => one === p.code) ?? "other";
  const detail = [p.what === "invalid value" ? "" : p.what, facts].filter(Boolean).join(": ");
  return place + t(`problem.${code}`) + (detail && t("problem.detail", { detail }));
}

/** The message of any thrown error. */
export function reason(e: unknown): string {
  return e instanceof ApiError ? sentence(e.problem) : String(e);
}

const lost: Problem = {
  code: "unavailable",
  what: "the playground does not answer",
  where: "",
  expected: "",
  found: "",
  way_out: "check that it is still running",
};

const broken: Problem = { ...lost, what: "the worker of this page failed", way_out: "reload the page" };

/** A worker that ran an experiment or read a file. */
const exhausted: Problem = { ...lost, what: "its worker failed", way_out: "choose a smaller size, or try again" };

const unreadable: Problem = { ...lost, code: "io", what: "the file cannot be read", way_out: "choose it again" };

/** What it means that an API does not answer. */
const silence = (reach: Reach) => (reach === reader ? broken : served ? lost : exhausted);

async function send(
  reach: Reach,
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  last = false,
): Promise<Response> {
  const bytes = body instanceof Blob;
  const call = reach(`/api/1/${path}`, {
    method,
    ...(body === undefined ? {} : { body: bytes ? body : JSON.stringify(body) }),
    ...(body === undefined || bytes ? {} : { headers: { "Content-Type": "application/json" } }),
    ...(signal ? { signal } : {}),
    ...(last ? { keepalive: true } : {}), // outlives the page
  });
  return checked(call, silence(reach));
}

/** `silent` describes an API that does not answer. */
async function checked(call: Promise<Response>, silent: Problem): Promise<Response> {
  let answer: Response;
  try {
    answer = await call;
  } catch (e) {
    if (e instanceof DOMException && e.name === "AbortError") throw e;
    throw new ApiError(0, silent);
  }
  if (answer.ok) return answer;
  const problem = await answer.json().then(
    (said: { error?: Problem }) => said.error ?? { ...silent, what: answer.statusText },
    () => ({ ...silent, what: answer.statusText }),
  );
  throw new ApiError(answer.status, problem);
}

/** Sends requests to one of the two APIs. */
function asker(reach: Reach) {
  return async <T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> =>
    (await send(reach, method, path, body, signal)).json() as Promise<T>;
}

const json = asker(reader);
const ofProgram = asker(program);

type Keys = { keys: Key[] } | { addresses: { seed: string; first: number; count: number } };

/** The steps or the filter whose keys a new filter gets. */
export type Keeps = { steps: Step[] } | { keys_of: string };

export const api = {
  about: () => json<About>("GET", "about"),
  plan: (wanted: Wanted, signal?: AbortSignal) => json<Plan>("POST", "plans", wanted, signal),
  make: (wanted: Wanted, keeps?: Keeps) => json<State>("POST", "filters", { ...wanted, ...keeps }),
  upload: async (file: Blob) => {
    const bytes = await file.arrayBuffer().catch(() => {
      throw new ApiError(0, unreadable);
    });
    return json<State>("POST", "files", new Blob([bytes]));
  },
  drop: (id: string) => send(reader, "DELETE", `filters/${id}`),
  /** `joins`: the keys belong to the step before, and are undone together with it. */
  add: (id: string, keys: Keys, joins = false) =>
    json<Added>("POST", `filters/${id}/add`, joins ? { ...keys, joins } : keys),
  ask: (id: string, keys: Keys, signal?: AbortSignal) => json<Asked>("POST", `filters/${id}/ask`, keys, signal),
  remove: (id: string, key: Key, by_force = false) => json<Removed>("POST", `filters/${id}/remove`, { key, by_force }),
  undo: (id: string) => json<State>("POST", `filters/${id}/undo`),
  reset: (id: string) => json<State>("POST", `filters/${id}/reset`),
  tick: (id: string, milliseconds: number) => json<State>("POST", `filters/${id}/tick`, { milliseconds }),
  cells: async (id: string, from: number, count: number) =>
    new Uint8Array(await (await send(reader, "GET", `filters/${id}/cells?from=${from}&count=${count}`)).arrayBuffer()),
  fill: (id: string, from: number, to: number, ranges: number) =>
    json<Fill>("GET", `filters/${id}/fill?from=${from}&to=${to}&ranges=${ranges}`),
  owners: (id: string, cell: number, signal?: AbortSignal) =>
    json<Owners>("GET", `filters/${id}/cells/${cell}`, undefined, signal),
  keys: (id: string, from: number, count: number) =>
    json<{ total: number; distinct: number; keys: { key: Key; copies: number }[] }>(
      "GET",
      `filters/${id}/keys?from=${from}&count=${count}`,
    ),
  search: (id: string, count: number, seed = "0") => json<Search>("POST", `filters/${id}/search`, { count, seed }),
  curve: (id: string) => json<{ points: Point[] }>("GET", `filters/${id}/curve`),
  file: async (id: string) => (await send(reader, "GET", `filters/${id}/file`)).blob(),
  /** The steps of a filter; null: unknown, or keys of more than `most` bytes. */
  steps: async (id: string, most: number) =>
    (await json<{ steps: Step[] | null }>("GET", `filters/${id}/steps?most=${most}`)).steps,
  /** The program with jobs and inspections. */
  program: () => ofProgram<About>("GET", "about"),
  start: <Result>(kind: string, body: object) => ofProgram<Job<Result>>("POST", "jobs", { kind, ...body }),
  job: <Result>(id: string, signal?: AbortSignal) => ofProgram<Job<Result>>("GET", `jobs/${id}`, undefined, signal),
  cancel: async (id: string) => void (await send(program, "DELETE", `jobs/${id}`, undefined, undefined, true)),
  inspect: (number: number, after: number, signal?: AbortSignal) =>
    ofProgram<Inspection>("GET", `inspections/${number}?after=${after}`, undefined, signal),
  history: (number: number, after: number, signal?: AbortSignal) =>
    ofProgram<History>("GET", `inspections/${number}/history?after=${after}`, undefined, signal),
  /** Inspects a file of the reader; null: the program inspects the files that it was started with. */
  inspectFile: inspect
    ? async (file: File) => (await checked(inspect!(file), exhausted)).json() as Promise<{ number: number }>
    : null,
  askInspected: (number: number, keys: Key[]) =>
    ofProgram<{ keys: KeyView[] }>("POST", `inspections/${number}/ask`, { keys }),
};
