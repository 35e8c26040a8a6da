// The state of the Play view: the filter, the steps to create it again, and the log. It survives changes of the view,
// and actions that were started continue.
import { reach } from "$host";
import type { Key, State, Wanted } from "../lib/api";
import { Journal, type Step } from "../lib/journal.svelte";
import type { Marks } from "../lib/marks";
import { most_keys, toQuery } from "../lib/shared";
import type { Line } from "../lib/story";
import type { Addition } from "./addition.svelte";
import type { Queue } from "./queue.svelte";
import { TypedKey } from "./typed-key.svelte";

/** The one in use, visible or not; its filter is deleted when the page is closed. */
let inUse: Played | undefined;
addEventListener("pagehide", (e) => {
  const id = inUse?.filter?.id;
  if (id && !e.persisted) void reach(`/api/1/filters/${id}`, { method: "DELETE", keepalive: true });
});

/** Makes `played` the one in use; returns the previous one. */
export function takeOver(played: Played): Played | undefined {
  const before = inUse;
  inUse = played;
  return before;
}

/** wanted: null for the default filter. */
export interface Pending {
  wanted: Wanted | null;
  keys: Key[];
}

export class Played {
  filter = $state.raw<State>();
  /** The parameters of the filter; null: it came from a file. */
  wanted = $state.raw<Wanted | null>(null);
  journal = $state.raw(new Journal());
  /** API steps per action; one undo takes back all steps of an action. */
  groups: number[] = [];
  /** To be created once there is a plan: the first filter, or that of a link. */
  pending = $state.raw<Pending | null>(null);
  /** Number of random addresses added; the next ones continue after them. */
  addresses = 0;
  /** A running insertion of many calls. */
  addition = $state.raw<Addition | null>(null);
  /** Changes with the bits. */
  version = $state(0);
  lines = $state.raw<Line[]>([]);
  marks = $state.raw<Marks | null>(null);
  /** The filter has changed, but the parts around the bits are not updated yet. */
  stale = false;
  readonly typed = new TypedKey();

  constructor(private readonly queue: Queue) {}

  /** The number of the first cell, as the original scheme counts. */
  get first(): number {
    return this.filter?.filter.first_number ?? 0;
  }

  get family() {
    return this.filter?.filter.family;
  }

  /** Number of keys in the filter, if known. */
  get inIt(): number {
    return this.filter?.facts.keys ?? 0;
  }

  /** A small filter as a query, for a link to it. */
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

  /** Records one step. */
  did(step: Step, told: Line, next: State, marks: Marks | null = null): void {
    this.journal.push(step);
    this.groups.push(1);
    this.tell(told);
    this.changed(next, marks);
  }

  /** Copies the state of another session. */
  goOnFrom({ filter, wanted, journal, groups, lines, addresses, addition }: Played): void {
    Object.assign(this, { filter, wanted, journal, groups, lines, addresses, addition });
  }

  /** Resolves when all actions started so far have ended. */
  get settled(): Promise<void> {
    return this.queue.settled;
  }
}
