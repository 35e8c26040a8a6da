// The filter that is played with: how it stands, what was done to it, so that it can be made again, and what is told of that.
// It waits here while another view is looked at; what was begun with it goes on.
import type { Key, State, Wanted } from "../lib/api";
import { Journal, type Step } from "../lib/journal.svelte";
import type { Marks } from "../lib/marks";
import { most_keys, toQuery } from "../lib/shared";
import type { Line } from "../lib/story";
import type { Addition } from "./addition.svelte";
import type { Queue } from "./queue.svelte";
import { TypedKey } from "./typed-key.svelte";

/** The one in use, in sight or not: its filter goes with the page. */
let inUse: Played | undefined;
addEventListener("pagehide", (e) => {
  const id = inUse?.filter?.id;
  if (id && !e.persisted) void fetch(`/api/1/filters/${id}`, { method: "DELETE", keepalive: true });
});

/** From now on `played` is the one in use; gives the one before. */
export function takeOver(played: Played): Played | undefined {
  const before = inUse;
  inUse = played;
  return before;
}

/** wanted: null for the one that is made without being asked for. */
export interface Pending {
  wanted: Wanted | null;
  keys: Key[];
}

export class Played {
  filter = $state.raw<State>();
  /** What it was made from; null: it came as a file. */
  wanted = $state.raw<Wanted | null>(null);
  journal = $state.raw(new Journal());
  /** How many steps of the API each action took: what is taken back as one. */
  groups: number[] = [];
  /** What is to be made as soon as it is planned: the first filter, or that of a link. */
  pending = $state.raw<Pending | null>(null);
  /** So many random addresses were added: the next come after them. */
  addresses = 0;
  /** What takes many calls, while it does. */
  addition = $state.raw<Addition | null>(null);
  /** Another number: its bits have changed. */
  version = $state(0);
  lines = $state.raw<Line[]>([]);
  marks = $state.raw<Marks | null>(null);
  /** It has changed, and what stands around the bits has not yet. */
  stale = false;
  readonly typed = new TypedKey();

  constructor(private readonly queue: Queue) {}

  /** The number of the first cell, as the original counts them. */
  get first(): number {
    return this.filter?.filter.first_number ?? 0;
  }

  get family() {
    return this.filter?.filter.family;
  }

  /** So many keys are in it, if that is known. */
  get inIt(): number {
    return this.filter?.facts.keys ?? 0;
  }

  /** All of a small filter, for a link to it. */
  get query(): Record<string, string> {
    return this.wanted ? toQuery(this.wanted, this.journal.few(most_keys)) : {};
  }

  tell(one: Line): void {
    this.lines = [one, ...this.lines].slice(0, 200);
  }

  changed(next: State, marks: Marks | null): void {
    this.filter = next;
    this.marks = marks;
    this.typed.forget();
    this.queue.gone = false;
    ++this.version;
    this.stale = true;
  }

  /** One step was taken. */
  did(step: Step, told: Line, next: State, marks: Marks | null = null): void {
    this.journal.push(step);
    this.groups.push(1);
    this.tell(told);
    this.changed(next, marks);
  }

  /** Stands where another stands. */
  goOnFrom({ filter, wanted, journal, groups, lines, addresses, addition }: Played): void {
    Object.assign(this, { filter, wanted, journal, groups, lines, addresses, addition });
  }

  /** When all that was begun with it has ended. */
  get settled(): Promise<void> {
    return this.queue.settled;
  }
}
