// What of a filter's picture is in sight: at which scale, and from which row on; and where in it the square of a cell
// stands. Read scale.ts first.
import type { State } from "../lib/api";
import { gridOf, levelsOf, nearest, type Grid, type Level, type Segment } from "./scale";

/** A square in pixels from the canvas's corner. */
export interface Place {
  x: number;
  y: number;
  size: number;
}

export class Sight {
  /** The room that there is for the picture, in pixels. */
  width = $state(0);
  tallest = $state(560);
  /** The scale that was chosen; null: the one that suits the filter. */
  #chosen = $state.raw<Level | null>(null);
  #scroll = $state(0);

  constructor(private readonly filter: () => State) {}

  readonly #scale = $derived.by(() => (this.width > 0 ? levelsOf(this.filter(), this.width, this.tallest) : null));
  readonly #step = $derived.by(() => {
    if (!this.#scale) return 0;
    return this.#chosen ? nearest(this.#scale.levels, this.#chosen) : this.#scale.first;
  });
  /** All squares of this scale, in sight or not; null until the width is known. */
  readonly grid = $derived.by((): Grid | null => {
    const level = this.#scale?.levels[this.#step];
    return level ? gridOf(this.filter(), level, this.width) : null;
  });
  readonly height = $derived.by(() => (this.grid ? Math.min(this.grid.height, this.tallest) : 0));
  /** How far above the canvas the picture begins. */
  readonly top = $derived.by(() =>
    this.grid ? Math.max(0, Math.min(this.#scroll, this.grid.height - this.height)) : 0,
  );

  /** There is more of it than fits. */
  get scrolls(): boolean {
    return this.grid !== null && this.grid.height > this.height;
  }

  /** It is shown at another scale than the first. */
  get zoomed(): boolean {
    return this.#scale !== null && this.#step !== this.#scale.first;
  }

  // ---- where things are ----

  /** The squares of a segment that can be seen, as whole rows. */
  visible(s: Segment): { from: number; to: number } {
    const { size, columns } = this.grid!;
    const above = Math.max(0, Math.floor((this.top - s.top) / size));
    const below = Math.min(s.rows, Math.ceil((this.top + this.height - s.top) / size));
    return { from: Math.min(s.units, above * columns), to: Math.max(0, Math.min(s.units, below * columns)) };
  }

  segmentOf(cell: number): Segment | undefined {
    return this.grid?.segments.find((one) => cell >= one.first && cell < one.first + one.cells);
  }

  /** The first cell of the square that a cell is in. */
  squareOf(cell: number): number {
    const { segments, unit } = this.grid!;
    const s = segments.findLast((one) => cell >= one.first)!;
    return s.first + Math.floor((cell - s.first) / unit) * unit;
  }

  placeOf(cell: number): Place | null {
    const s = this.segmentOf(cell);
    if (!s || !this.grid) return null;
    const { unit, columns, left, size } = this.grid;
    const i = Math.floor((cell - s.first) / unit);
    return { x: left + (i % columns) * size, y: s.top - this.top + Math.floor(i / columns) * size, size };
  }

  /** The first cell of the square there; -1 where there is none. */
  cellAt(x: number, y: number): number {
    if (!this.grid) return -1;
    const { unit, columns, left, size, segments } = this.grid;
    const column = Math.floor((x - left) / size);
    if (column < 0 || column >= columns) return -1;
    for (const s of segments) {
      const row = Math.floor((y + this.top - s.top) / size);
      const i = row * columns + column;
      if (row >= 0 && row < s.rows && i < s.units) return s.first + i * unit;
    }
    return -1;
  }

  /** The cell there, or the one that is next to it. */
  cellNear(x: number, y: number): number {
    if (!this.grid) return 0;
    const { columns, left, size, segments, unit } = this.grid;
    const column = Math.max(0, Math.min(columns - 1, Math.floor((x - left) / size)));
    const s = segments.find((one) => y + this.top < one.top + one.rows * size) ?? segments.at(-1)!;
    const row = Math.max(0, Math.min(s.rows - 1, Math.floor((y + this.top - s.top) / size)));
    return s.first + Math.min(s.units - 1, row * columns + column) * unit;
  }

  // ---- what changes it ----

  /** At the scale that suits the filter, from its beginning. */
  begin(): void {
    this.#chosen = null;
    this.#scroll = 0;
  }

  canZoom(by: -1 | 1): boolean {
    return this.#scale !== null && (by < 0 ? this.#step > 0 : this.#step < this.#scale.levels.length - 1);
  }

  /** Nearer (-1) or farther (1); what is at that place stays there. False: there is no such scale. */
  zoom(by: -1 | 1, x = this.width / 2, y = this.height / 2): boolean {
    if (!this.canZoom(by)) return false;
    const cell = this.cellNear(x, y);
    this.#chosen = this.#scale!.levels[this.#step + by]!;
    const at = this.placeOf(cell);
    if (at) this.#scroll = Math.max(0, this.top + at.y + at.size / 2 - y);
    return true;
  }

  /** A square of many cells opens into them. */
  open(cell: number): void {
    if (!this.#scale || !this.grid) return;
    const { unit } = this.grid;
    const near = this.#scale.levels.findLastIndex((l, i) => i < this.#step && l.unit < unit && l.size >= 8);
    this.#chosen = this.#scale.levels[near < 0 ? 0 : near]!;
    this.#scroll = Math.max(0, this.top + this.placeOf(cell)!.y - this.height / 3);
  }

  /** Scrolls until all of a cell's square is in sight. */
  reveal(cell: number): void {
    const at = this.placeOf(cell)!;
    if (at.y < 0) this.#scroll = this.top + at.y;
    else if (at.y + at.size > this.height) this.#scroll = this.top + at.y + at.size - this.height;
  }

  /** Drags it down by so many pixels; gives by how many it could not, since it ends there. */
  drag(y: number): number {
    const wanted = this.top - y;
    this.#scroll = Math.max(0, Math.min(wanted, this.grid!.height - this.height));
    return wanted - this.#scroll;
  }
}
