// The reader's actions on the filter. Each runs in the queue, updates the state and writes to the log.
import { api, ApiError, type About, type Key, type KeyView, type State } from "../lib/api";
import { callsOf, callsOfFile, type Part as Call } from "../lib/lines";
import { marksOf } from "../lib/marks";
import { brief, bytes, count, percent } from "../lib/numbers";
import { line, listOf, toldAdded, toldAsked, type Part } from "../lib/story";
import { mistake, typedNumber } from "../lib/typed";
import { t } from "../lib/words.svelte";
import { Addition } from "./addition.svelte";
import type { Played } from "./played.svelte";
import type { Queue } from "./queue.svelte";

/** Number of absent keys to look up in a search for false positives. */
export const strangers = 100_000;

const cameIn = (came: number, isNew: number) =>
  line("done", [came === 1 ? "story.many.one" : "story.many", { count: count(came), new: count(isNew) }]);

export class Actions {
  constructor(
    private readonly played: Played,
    private readonly queue: Queue,
  ) {}

  /** Limits of the API; set by the view. */
  limits!: About["limits"];

  // ---- one key ----

  add = (key: string): void => {
    const { played } = this;
    if (!played.filter) return;
    if (played.typed.value === key) played.typed.value = "";
    void this.queue.act(
      async () => {
        const done = await api.add(this.#id, { keys: [key] });
        const view = done.keys[0]!;
        played.did(toldAdded(view, played.first), done.state, marksOf(view, "added"));
      },
      "key",
      () => {
        if (played.typed.value === "") played.typed.value = key;
      },
    );
  };

  ask = (key: Key): void => {
    const { played } = this;
    if (!played.filter) return;
    if (typeof key === "string") played.typed.asked(key);
    void this.queue.act(async () => {
      const view = (await api.ask(this.#id, { keys: [key] })).keys[0]!;
      played.tell(toldAsked(view, played.first));
      played.typed.view = null;
      played.marks = marksOf(view, "asked");
    }, "key");
  };

  remove = (key: Key, by_force = false): Promise<void> =>
    this.queue.act(async () => {
      const { played } = this;
      try {
        const done = await api.remove(this.#id, key, by_force);
        const name = brief(key);
        const bits = listOf(done.cells.map((c) => count(c + played.first)));
        let told = line("done", ["story.removed", { key: name, bits }]);
        if (done.result === "not_found") told = line("no", ["story.absent", { key: name }]);
        else if (by_force) {
          const keys = listOf(done.lost.slice(0, 8).map(brief), done.lost_count > 8);
          const lost: Part = done.lost_count > 0 ? ["story.forced.lost", { keys }] : ["story.forced.none"];
          told = line(done.lost_count > 0 ? "wrong" : "done", ["story.forced", { key: name, bits }], lost);
        }
        played.did(told, done.state);
      } catch (e) {
        if (!(e instanceof ApiError && e.status === 409 && !by_force && played.family === "plain")) throw e;
        this.queue.refused = key;
      }
    }, "key");

  // ---- many keys ----

  addLines = (all: string[]): void => {
    const said = (n: number) => t("play.progress.keys", { done: count(n), all: count(all.length) });
    void this.#addCalls(callsOf(all, this.limits), all.length, said);
  };

  addFile = (file: File): void => {
    const said = (n: number) => t("play.progress.bytes", { done: bytes(n), all: bytes(file.size) });
    void this.#addCalls(callsOfFile(file, this.limits), file.size, said);
  };

  /** Adds the calls one by one, with progress, until the end or until the reader stops it. */
  #addCalls(calls: Iterable<Call> | AsyncIterable<Call>, all: number, said: (n: number) => string): Promise<void> {
    return this.queue.act(async () => {
      const { played } = this;
      let came = 0;
      let isNew = 0;
      let next: State | undefined;
      let last: KeyView[] = [];
      const addition = new Addition(all, said);
      played.addition = addition;
      try {
        for await (const call of calls) {
          if (addition.stopped) break;
          if (call.keys.length === 0) continue;
          const answer = await api.add(this.#id, { keys: call.keys }, next !== undefined);
          came += answer.count;
          isNew += answer.new;
          next = answer.state;
          last = answer.keys;
          addition.done = call.done;
        }
      } finally {
        played.addition = null;
        if (addition.stopped) played.tell(line("done", ["story.stopped", { count: count(came) }]));
        else if (came > 0) played.tell(cameIn(came, isNew));
        if (next) played.changed(next, came === 1 ? marksOf(last[0]!, "added") : null);
      }
    }, "key");
  }

  /** Adds random addresses; `typed` is their number. */
  addAddresses = (typed: string): Promise<void> =>
    this.queue.act(async () => {
      const { played } = this;
      const range = { seed: "1", first: played.filter!.next_address, count: typedNumber(typed) };
      const wrong = mistake(range.count, "whole");
      if (wrong) {
        this.queue.trouble = t(wrong);
        return;
      }
      const said = await api.add(this.#id, { addresses: range });
      played.did(cameIn(said.count, said.new), said.state);
    });

  // ---- the whole filter ----

  undo = (): Promise<void> =>
    this.queue.act(async () => {
      this.played.did(line("done", ["story.undone"]), await api.undo(this.#id));
    });

  reset = (): Promise<void> =>
    this.queue.act(async () => {
      this.played.did(line("done", ["story.reset"]), await api.reset(this.#id));
    });

  tick = (milliseconds: number): Promise<void> =>
    this.queue.act(async () => {
      const next = await api.tick(this.#id, milliseconds);
      const seconds = Number((milliseconds / 1000).toPrecision(3));
      const told = line("done", [seconds === 1 ? "story.ticked.one" : "story.ticked", { seconds }]);
      this.played.did(told, next);
    });

  search = (): Promise<void> =>
    this.queue.act(async () => {
      const s = await api.search(this.#id, strangers);
      const said = line(s.hits > 0 ? "maybe" : "no", [
        "story.searched",
        { hits: count(s.hits), queries: count(s.queries), rate: percent(s.rate) },
      ]);
      said.ask = s.found.slice(0, 3);
      this.played.tell(said);
    });

  /** Replaces the filter by one from a file. */
  upload = (file: File): Promise<void> =>
    this.queue.act(async () => {
      const { played } = this;
      const old = played.filter?.id;
      const most = this.limits.file_bytes;
      if (file.size > most) {
        this.queue.trouble = t("play.upload.large", { name: file.name, most: bytes(most) });
        return;
      }
      const opened = await api.upload(file).catch((e: unknown) => {
        // Error messages show the reader's file name.
        throw e instanceof ApiError ? new ApiError(e.status, { ...e.problem, where: file.name }) : e;
      });
      played.wanted = null;
      played.tell(line("done", ["story.opened", { name: file.name }]));
      played.changed(opened, null);
      if (old) await api.drop(old);
    });

  get #id(): string {
    return this.played.filter!.id;
  }
}
