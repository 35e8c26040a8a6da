// The loaded cells of a filter: all of a small filter; otherwise the visible ones, one by one or counted per square.
import { api, type State } from "../lib/api";
import type { Segment } from "./scale";
import type { Sight } from "./sight.svelte";

/** Loaded squares of one layer: the values of cells if `unit` is 1, otherwise the number of set cells per square. */
export interface Piece {
  layer: number;
  unit: number;
  first: number;
  data: ArrayLike<number>;
}

// Limits of one API call.
const cells_at_once = 100_000;
const ranges_at_once = 16_384;

export class Cells {
  #pieces: Piece[] = [];
  #last = 0;
  #newest = 0;
  #loadedFor = "";

  /** `come` is called after each load, `failed` with the error of the latest request. */
  constructor(
    private readonly filter: () => State,
    private readonly sight: Sight,
    private readonly come: () => void,
    private readonly failed: (e: unknown) => void,
  ) {}

  /** The loaded part of a layer at `unit` cells per square. */
  of(layer: number, unit: number): Piece | undefined {
    return this.#pieces.find((p) => p.layer === layer && p.unit === unit);
  }

  forget(): void {
    this.#pieces = [];
  }

  /** For an effect: loads the visible cells unless this version is loaded. Returns a function that cancels the load. */
  need(version: number): (() => void) | undefined {
    const { grid } = this.sight;
    if (!grid) return undefined;
    const filter = this.filter();
    const bits = `${filter.id} ${version} ${filter.facts.cells} `;
    const seen = this.#all()
      ? ""
      : `${grid.unit} ${grid.segments.map((s) => Object.values(this.sight.visible(s)).join("-")).join(" ")}`;
    const needed = bits + seen;
    if (needed === this.#loadedFor) return undefined;
    // While the picture is dragged, one load after the last move is enough.
    const later = setTimeout(
      () => {
        this.#loadedFor = needed;
        void this.#load();
      },
      this.#loadedFor.startsWith(bits) ? 60 : 0,
    );
    return () => clearTimeout(later);
  }

  /** Whether all cells are loaded at once. */
  #all(): boolean {
    return this.sight.grid!.unit === 1 && this.filter().filter.cells <= cells_at_once;
  }

  async #load(): Promise<void> {
    const mine = ++this.#last;
    const { id } = this.filter();
    try {
      const pieces = await (this.#all() ? this.#loadAll(id) : this.#loadSeen(id));
      if (mine < this.#newest || id !== this.filter().id) return;
      this.#newest = mine;
      this.#pieces = pieces;
      this.come();
    } catch (e) {
      if (mine !== this.#last || id !== this.filter().id) return;
      this.#loadedFor = "";
      this.failed(e);
    }
  }

  async #loadAll(id: string): Promise<Piece[]> {
    const { segments } = this.sight.grid!;
    const all = await loadCells(id, 0, this.filter().filter.cells);
    return segments.map((s) => ({
      layer: s.layer,
      unit: 1,
      first: 0,
      data: all.subarray(s.first, s.first + s.cells),
    }));
  }

  #loadSeen(id: string): Promise<Piece[]> {
    const { unit, segments } = this.sight.grid!;
    const seen = segments.map((s) => ({ s, ...this.sight.visible(s) })).filter(({ from, to }) => from < to);
    return Promise.all(
      seen.map(async ({ s, from, to }) => ({
        layer: s.layer,
        unit,
        first: from,
        data: await (unit === 1 ? loadCells(id, s.first + from, s.first + to) : loadRanges(id, s, from, to, unit)),
      })),
    );
  }
}

async function loadCells(id: string, from: number, to: number): Promise<Uint8Array> {
  const all = new Uint8Array(to - from);
  const calls: Promise<void>[] = [];
  for (let at = from; at < to; at += cells_at_once) {
    calls.push(api.cells(id, at, Math.min(cells_at_once, to - at)).then((part) => all.set(part, at - from)));
  }
  await Promise.all(calls);
  return all;
}

async function loadRanges(id: string, s: Segment, from: number, to: number, unit: number): Promise<number[]> {
  const calls: Promise<number[]>[] = [];
  const whole = Math.min(to, Math.floor(s.cells / unit));
  const ask = (a: number, b: number, n: number) =>
    calls.push(api.fill(id, s.first + a, s.first + b, n).then((said) => said.ones));
  for (let at = from; at < whole; at += ranges_at_once) {
    const end = Math.min(whole, at + ranges_at_once);
    ask(at * unit, end * unit, end - at);
  }
  if (to > whole) ask(whole * unit, s.cells, 1);
  return (await Promise.all(calls)).flat();
}
