// Creates the filter: from a link, from the controls, or again after the server deleted it. A small filter is fully
// encoded in the URL.
import { untrack } from "svelte";
import { api, type Plan, type Wanted } from "../lib/api";
import { doAgain, Journal, type Step } from "../lib/journal.svelte";
import { count } from "../lib/numbers";
import { current, go } from "../lib/route.svelte";
import { fromQuery } from "../lib/shared";
import { line } from "../lib/story";
import { takeOver, type Pending, type Played } from "./played.svelte";
import type { Queue } from "./queue.svelte";

const fresh: Wanted = { layout: "classic", capacity: 20, rate: 0.05 };

const same = (a: Wanted | null, b: Wanted | null) => JSON.stringify(a) === JSON.stringify(b);

export function drop(id: string | undefined): void {
  if (id) void api.drop(id).catch(() => {});
}

export class Making {
  /** Initial values of the controls; a change of `starts` resets the controls to them. */
  start = $state.raw<Wanted>(fresh);
  starts = $state(0);
  /** The link makes no filter, so the previous one is still shown. */
  unopened = $state(false);
  #planned = $state.raw<{ wanted: Wanted; plan: Plan } | null>(null);
  #inUrl = "";

  constructor(
    private readonly played: Played,
    private readonly queue: Queue,
  ) {}

  /** The controls describe another filter than the current one. */
  readonly another = $derived.by(
    () => this.played.filter !== undefined && this.#planned !== null && !same(this.#planned.wanted, this.played.wanted),
  );

  /** The plan of the controls; null: their values make no filter. */
  get plan(): Plan | null {
    return this.#planned?.plan ?? null;
  }

  /** The first filter, or that of a link, is still to be created. */
  get waits(): boolean {
    return this.played.pending !== null;
  }

  /** Retries after an outage. Without a plan, the controls keep requesting one. */
  goOn(): void {
    if (this.#planned) this.onplan(this.#planned.wanted, this.#planned.plan);
  }

  /** For onMount; the returned function is called when the view is left. */
  open = (): (() => void) => {
    const { played } = this;
    const { query } = current();
    const given = fromQuery(query);
    const before = takeOver(played);
    this.#inUrl = query.toString();
    if (!given && before) this.#goOnFrom(before);
    else {
      void before?.settled.then(() => drop(before.filter?.id));
      this.#makeFirst(given ?? { wanted: null, keys: [] });
    }
    return () => (this.queue.left = true);
  };

  /**
   * Returning without a link restores the filter as it was left, with the results of actions that were still running.
   */
  #goOnFrom(before: Played): void {
    const { played } = this;
    const { pending } = before;
    played.goOnFrom(before);
    played.pending = pending;
    this.#begin((pending ?? played).wanted);
    const { start } = this;
    void this.queue.act(async () => {
      await before.settled;
      played.goOnFrom(before);
      // Unless another link was opened meanwhile.
      if (this.start === start) {
        if (before.pending && !pending)
          this.#makeFirst(before.pending); // it could not be created there after all
        else if (!pending && !same(start, played.wanted ?? fresh)) this.#begin(played.wanted);
      }
      if (played.filter) played.changed(await api.state(played.filter.id), null);
    });
  }

  /** For an effect: opens a link that was followed while the view is open, and resets the controls to it. */
  follow = (): void => {
    const { view, query } = current();
    const text = query.toString();
    if (view !== "play" || text === this.#inUrl) return;
    untrack(() => {
      const given = fromQuery(query);
      this.#inUrl = text;
      if (!given) {
        if (this.played.filter) this.keepInUrl();
        return;
      }
      this.unopened = false;
      this.#makeFirst(given);
    });
  };

  #makeFirst(pending: Pending): void {
    this.played.pending = pending;
    this.#begin(pending.wanted);
  }

  /** Resets the controls. */
  #begin(start: Wanted | null | undefined): void {
    this.start = start ?? fresh;
    this.#planned = null;
    ++this.starts;
  }

  keepInUrl(): void {
    if (this.queue.left || current().view !== "play") return;
    go("play", "", this.played.query, true);
    this.#inUrl = current().query.toString();
  }

  /** Once the reader continues with the previous filter, the link that could not be opened is forgotten. */
  backToShown(): void {
    if (!this.unopened) return;
    this.unopened = false;
    this.played.pending = null;
    this.#begin(this.played.wanted);
  }

  /** Receives plans of the controls; null: their values make no filter. */
  onplan = (wanted: Wanted, plan: Plan | null): void => {
    const { played, queue } = this;
    this.#planned = plan && { wanted, plan };
    if (!plan) {
      this.unopened = this.waits && played.filter !== undefined;
      return;
    }
    if (played.pending) {
      const { pending } = played;
      const { keys } = pending;
      const { start } = this;
      played.pending = null;
      this.unopened = false;
      void queue.act(
        () => this.#make(wanted, keys.length > 0 ? [{ keys }] : null),
        "actions",
        () => {
          if (this.start !== start) return; // another link was opened meanwhile
          played.pending = pending;
          this.unopened = played.filter !== undefined;
        },
      );
    } else if (played.filter?.truth && played.filter.steps === 0 && queue.empty && !same(wanted, played.wanted)) {
      // An empty filter follows the controls; a filter with keys waits for the button.
      void queue.act(() => this.#make(wanted, null));
    }
  };

  /** Creates the filter of the controls, with the present keys. */
  makeAnother(): Promise<void> {
    const { wanted } = this.#planned!;
    return this.queue.act(() => this.#make(wanted, this.played.journal.adds()));
  }

  /** The filter is gone: creates it again and repeats the steps. */
  makeAgain(): Promise<void> {
    const { played } = this;
    return this.queue.act(() => this.#make(played.wanted!, played.journal.whole ? played.journal.steps() : null));
  }

  /** A failure leaves everything as it was. */
  async #make(wanted: Wanted, steps: Step[] | null): Promise<void> {
    const { played } = this;
    const old = played.filter?.id;
    const made = await api.make(wanted);
    const again = await doAgain(made, steps ?? []).catch((e: unknown) => {
      drop(made.id);
      throw e;
    });
    // Changing the controls of an empty filter creates many filters; keep one line in the log.
    if (played.lines[0]?.parts[0]?.[0].startsWith("story.made")) played.lines = played.lines.slice(1);
    const { bits, probes } = made.filter;
    played.tell(line("done", [probes === 1 ? "story.made.one" : "story.made", { bits: count(bits), probes }]));
    if (again.count > 0)
      played.tell(line("done", [again.count === 1 ? "story.kept.one" : "story.kept", { count: count(again.count) }]));
    const journal = new Journal();
    for (const step of steps ?? []) journal.push(step);
    played.journal = journal;
    played.groups = (steps ?? []).map(() => 1);
    played.wanted = wanted;
    played.changed(again.state, null);
    if (old !== made.id) drop(old);
  }
}
