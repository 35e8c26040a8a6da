// The API in workers.
//
// One machine has the filters, and another one the inspected files, which may need much memory. Each job has a machine
// of its own, because a job occupies it until its end; to cancel the job, the machine is ended. Jobs run one after the
// other, so that each is measured alone.
import { Machine, type Answer } from "./machine";
import { failed } from "../lib/failed.svelte";

let filters: Machine | undefined;
let files: Machine | undefined;

/** The filters are lost with their machine, so the page has to be loaded again. */
function machineOfFilters(): Machine {
  filters ??= new Machine(undefined, () => (failed.is = true));
  return filters;
}

function machineOfFiles(): Machine {
  files ??= new Machine(undefined, () => {
    files = undefined;
    wakeAll();
  });
  return files;
}

function response({ status, type, body }: Answer): Response {
  return new Response(status === 204 ? null : body, { status, headers: { "Content-Type": type } });
}

function aborted(): DOMException {
  return new DOMException("aborted", "AbortError");
}

// ---- jobs -----------------------------------------------------------------------------------------------------------

interface Job {
  machine: Machine;
  state: string; // as the API describes it
}

const jobs = new Map<string, Job>();
const queue: string[] = [];
let running: string | undefined;

function runNext(): void {
  running = queue.shift();
  if (running) jobs.get(running)!.machine.run(running);
}

function leave(id: string): void {
  if (running === id) runNext();
  else if (queue.includes(id)) queue.splice(queue.indexOf(id), 1);
}

function stateOf(job: Job): Response {
  return new Response(job.state, { status: 200, headers: { "Content-Type": "application/json" } });
}

/** As many as the server lets wait, and keeps. */
const most_waiting = 16;
const most_kept = 256;

/** The error of a job whose machine failed. */
const failure = {
  code: "unavailable",
  what: "the worker of this experiment failed",
  where: "",
  expected: "",
  found: "",
  hint: "",
  way_out: "choose smaller numbers, or start it again",
};

function tooMany(): Response {
  const error = {
    ...failure,
    what: "too many jobs are waiting",
    expected: `at most ${most_waiting}`,
    found: String(queue.length),
    way_out: "wait for a job to finish, or cancel one",
  };
  return Response.json({ error }, { status: 503 });
}

async function start(path: string, body: string): Promise<Response> {
  if (queue.length >= most_waiting) return tooMany();
  for (const id of jobs.keys()) {
    if (jobs.size < most_kept) break;
    if (id !== running && !queue.includes(id)) jobs.delete(id);
  }
  let id = "";
  const made = new Machine(
    (state) => {
      jobs.get(id)!.state = state;
      const now = (JSON.parse(state) as { state: string }).state;
      if (now === "running" || now === "waiting") return;
      made.end();
    },
    () => {
      const job = jobs.get(id);
      const now = job && (JSON.parse(job.state) as { state: string });
      // Without a last state, the machine failed.
      if (now && ["running", "waiting"].includes(now.state))
        job.state = JSON.stringify({ ...now, state: "failed", error: failure });
      leave(id);
    },
  );
  const answer = await made.ask({ method: "POST", path, body });
  if (answer.status >= 300) {
    made.end();
    return response(answer);
  }
  const state = new TextDecoder().decode(answer.body);
  id = (JSON.parse(state) as { id: string }).id;
  jobs.set(id, { machine: made, state });
  queue.push(id);
  if (!running) runNext();
  return response(answer);
}

// ---- requests -------------------------------------------------------------------------------------------------------

/** Requests that wait for a new state of an inspected file. */
const waiting = new Set<() => void>();

function wakeAll(): void {
  for (const wake of [...waiting]) wake();
}

/** Waits until a file is read again, or the caller has given up. */
function news(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((done) => {
    const wake = () => {
      waiting.delete(wake);
      signal?.removeEventListener("abort", wake);
      done();
    };
    waiting.add(wake);
    signal?.addEventListener("abort", wake);
  });
}

interface Asked {
  method: string;
  path: string;
  body?: string | ArrayBuffer;
}

async function askedBy(path: string, init: RequestInit): Promise<Asked> {
  const body = init.body instanceof Blob ? await init.body.arrayBuffer() : (init.body as string | undefined);
  return { method: init.method ?? "GET", path, ...(body === undefined ? {} : { body }) };
}

/** The API with the reader's filters. */
export async function readerHere(path: string, init: RequestInit): Promise<Response> {
  const signal = init.signal ?? undefined;
  const answer = await machineOfFilters().ask(await askedBy(path, init), signal);
  if (signal?.aborted) throw aborted();
  return response(answer);
}

/** The API with jobs and inspected files. */
export async function programHere(path: string, init: RequestInit): Promise<Response> {
  const signal = init.signal ?? undefined;
  const asked = await askedBy(path, init);
  if (path === "/api/1/jobs" && asked.method === "POST") return start(path, asked.body as string);
  const id = /^\/api\/1\/jobs\/(\w+)$/.exec(path)?.[1];
  const job = id === undefined ? undefined : jobs.get(id);
  if (job && asked.method === "GET") return stateOf(job);
  if (job && asked.method === "DELETE") {
    jobs.delete(id!);
    job.machine.end();
    return new Response(null, { status: 204 });
  }
  for (;;) {
    const answer = await machineOfFiles().ask(asked, signal);
    if (signal?.aborted) throw aborted();
    const after = Number(/^\/api\/1\/inspections\/\d+\?after=(\d+)$/.exec(path)?.[1] ?? 0);
    if (after === 0 || answer.status !== 200) return response(answer);
    if ((JSON.parse(new TextDecoder().decode(answer.body)) as { version: number }).version > after) {
      return response(answer);
    }
    await news(signal);
    if (signal?.aborted) throw aborted();
  }
}

export async function inspectHere(file: File): Promise<Response> {
  const answer = await machineOfFiles().ask({ inspect: file });
  wakeAll();
  return response(answer);
}
