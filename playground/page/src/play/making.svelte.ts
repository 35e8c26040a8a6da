// How the filter comes to be: from the link that was followed, from the controls, or again, if the server has given it up.
// All of a small one is in the URL.
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
  /** What the controls begin with; with another number they begin anew. */
  start = $state.raw<Wanted>(fresh);
  starts = $state(0);
  /** The link that was followed makes no filter: the one from before is still shown. */
  unopened = $state(false);
  #planned = $state.raw<{ wanted: Wanted; plan: Plan } | null>(null);
  #inUrl = "";

  constructor(
    private readonly played: Played,
    private readonly queue: Queue,
  ) {}

  /** The controls say another filter than the one that there is. */
  readonly another = $derived.by(
    () => this.played.filter !== undefined && this.#planned !== null && !same(this.#planned.wanted, this.played.wanted),
  );

  /** The first filter, or that of a link, is still to be made. */
  get waits(): boolean {
    return this.played.pending !== null;
  }

  /** It could not be made, since the server was away. If there was no plan, the controls go on asking for it. */
  goOn(): void {
    if (this.#planned) this.onplan(this.#planned.wanted, this.#planned.plan);
  }

  /** For onMount: what it returns is to be called when the view is left. */
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

  /** Who comes back without a link finds the filter as it was left, or as what was begun then has left it. */
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
      // Unless a link was followed meanwhile.
      if (this.start === start) {
        if (before.pending && !pending)
          this.#makeFirst(before.pending); // it could not be made there after all
        else if (!pending && !same(start, played.wanted ?? fresh)) this.#begin(played.wanted);
      }
      if (played.filter) played.changed(await api.state(played.filter.id), null);
    });
  }

  /** For an effect: a link is followed while the view is open. The controls begin anew with what it says. */
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

  /** The controls begin anew. */
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

  /** Whoever goes on with the filter from before has done with the link that could not be opened. */
  backToShown(): void {
    if (!this.unopened) return;
    this.unopened = false;
    this.played.pending = null;
    this.#begin(this.played.wanted);
  }

  /** The controls have a plan; null: what they say cannot be made. */
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
          if (this.start !== start) return; // another link was followed meanwhile
          played.pending = pending;
          this.unopened = played.filter !== undefined;
        },
      );
    } else if (played.filter?.truth && played.filter.steps === 0 && queue.empty && !same(wanted, played.wanted)) {
      // An empty filter follows the controls; one with keys waits to be told.
      void queue.act(() => this.#make(wanted, null));
    }
  };

  /** What the controls say, with the keys that are in. */
  makeAnother(): Promise<void> {
    const { wanted } = this.#planned!;
    return this.queue.act(() => this.#make(wanted, this.played.journal.adds()));
  }

  /** The filter is no longer there: what was done to it is done again. */
  makeAgain(): Promise<void> {
    const { played } = this;
    return this.queue.act(() => this.#make(played.wanted!, played.journal.whole ? played.journal.steps() : null));
  }

  /** If it fails, all is as it was. */
  async #make(wanted: Wanted, steps: Step[] | null): Promise<void> {
    const { played } = this;
    const old = played.filter?.id;
    const made = await api.make(wanted);
    const again = await doAgain(made, steps ?? []).catch((e: unknown) => {
      drop(made.id);
      throw e;
    });
    // Whoever turns the controls of an empty filter makes many.
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
