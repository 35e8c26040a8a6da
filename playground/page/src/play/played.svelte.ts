// The state of the Play view: the filter, its parameters, and the log.
import type { State, Wanted } from "../lib/api";
import type { Marks } from "../lib/marks";
import type { Line } from "../lib/story";
import type { Addition } from "./addition.svelte";
import { TypedKey } from "./typed-key.svelte";

export class Played {
  filter = $state.raw<State>();
  /** The parameters of the filter; null: it came from a file. */
  wanted = $state.raw<Wanted | null>(null);
  /** A running insertion of many calls. */
  addition = $state.raw<Addition | null>(null);
  /** Changes with the bits. */
  version = $state(0);
  lines = $state.raw<Line[]>([]);
  marks = $state.raw<Marks | null>(null);
  /** The filter has changed, but the parts around the bits are not updated yet. */
  stale = false;
  readonly typed = new TypedKey();

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

  tell(one: Line): void {
    this.lines = [one, ...this.lines].slice(0, 200);
  }

  changed(next: State, marks: Marks | null): void {
    this.filter = next;
    this.marks = marks;
    this.typed.forget();
    ++this.version;
    this.stale = true;
  }

  /** Records one step. */
  did(told: Line, next: State, marks: Marks | null = null): void {
    this.tell(told);
    this.changed(next, marks);
  }
}
