// The visible part of a filter's picture: zoom level, scroll position, and the places of cells in it. Read scale.ts
// first.
import type { State } from "../lib/api";
import { widthOf } from "../lib/measured.svelte";
import { count } from "../lib/numbers";
import { gridOf, levelsOf, nearest, type Grid, type Level, type Segment, type Widest } from "./scale";

/** A square, in pixels from the corner of the canvas. */
export interface Place {
  x: number;
  y: number;
  size: number;
}

export class Sight {
  /** Room for the picture, in pixels. */
  width = $state(0);
  tallest = $state(560);
  /** The chosen zoom level; null: the default of the filter. */
  #chosen = $state.raw<Level | null>(null);
  #scroll = $state(0);

  constructor(private readonly filter: () => State) {}

  readonly #widest = $derived.by((): Widest => {
    const { cells, first_number } = this.filter().filter;
    return { text: count(cells - 1 + first_number), measure: widthOf };
  });
  readonly #scale = $derived.by(() =>
    this.width > 0 ? levelsOf(this.filter(), this.width, this.tallest, this.#widest) : null,
  );
  readonly #step = $derived.by(() => {
    if (!this.#scale) return 0;
    return this.#chosen ? nearest(this.#scale.levels, this.#chosen) : this.#scale.first;
  });
  /** All squares at this level, visible or not; null until the width is known. */
  readonly grid = $derived.by((): Grid | null => {
    const level = this.#scale?.levels[this.#step];
    return level ? gridOf(this.filter(), level, this.width, this.#widest) : null;
  });
  readonly height = $derived.by(() => (this.grid ? Math.min(this.grid.height, this.tallest) : 0));
  /** Height of the hidden part above the canvas. */
  readonly top = $derived.by(() =>
    this.grid ? Math.max(0, Math.min(this.#scroll, this.grid.height - this.height)) : 0,
  );

  /** The picture is higher than its room. */
  get scrolls(): boolean {
    return this.grid !== null && this.grid.height > this.height;
  }

  /** The level is not the default. */
  get zoomed(): boolean {
    return this.#scale !== null && this.#step !== this.#scale.first;
  }

  // ---- where things are ----

  /** The visible squares of a segment, as whole rows. */
  visible(s: Segment): { from: number; to: number } {
    const { size, columns } = this.grid!;
    const above = Math.max(0, Math.floor((this.top - s.top) / size));
    const below = Math.min(s.rows, Math.ceil((this.top + this.height - s.top) / size));
    return { from: Math.min(s.units, above * columns), to: Math.max(0, Math.min(s.units, below * columns)) };
  }

  segmentOf(cell: number): Segment | undefined {
    return this.grid?.segments.find((one) => cell >= one.first && cell < one.first + one.cells);
  }

  /** The first cell of the square that contains a cell. */
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

  /** The first cell of the square at a point; -1: no square. */
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

  /** The cell at a point, or the nearest one. */
  cellNear(x: number, y: number): number {
    if (!this.grid) return 0;
    const { columns, left, size, segments, unit } = this.grid;
    const column = Math.max(0, Math.min(columns - 1, Math.floor((x - left) / size)));
    const s = segments.find((one) => y + this.top < one.top + one.rows * size) ?? segments.at(-1)!;
    const row = Math.max(0, Math.min(s.rows - 1, Math.floor((y + this.top - s.top) / size)));
    return s.first + Math.min(s.units - 1, row * columns + column) * unit;
  }

  // ---- what changes it ----

  /** The default level, from the top. */
  begin(): void {
    this.#chosen = null;
    this.#scroll = 0;
  }

  canZoom(by: -1 | 1): boolean {
    return this.#scale !== null && (by < 0 ? this.#step > 0 : this.#step < this.#scale.levels.length - 1);
  }

  /** Zooms in (-1) or out (1) and keeps the cell at the point in place. False: there is no such level. */
  zoom(by: -1 | 1, x = this.width / 2, y = this.height / 2): boolean {
    if (!this.canZoom(by)) return false;
    const cell = this.cellNear(x, y);
    this.#chosen = this.#scale!.levels[this.#step + by]!;
    const at = this.placeOf(cell);
    if (at) this.#scroll = Math.max(0, this.top + at.y + at.size / 2 - y);
    return true;
  }

  /** Zooms into a square of several cells. */
  open(cell: number): void {
    if (!this.#scale || !this.grid) return;
    const { unit } = this.grid;
    const near = this.#scale.levels.findLastIndex((l, i) => i < this.#step && l.unit < unit && l.size >= 8);
    this.#chosen = this.#scale.levels[near < 0 ? 0 : near]!;
    this.#scroll = Math.max(0, this.top + this.placeOf(cell)!.y - this.height / 3);
  }

  /** Scrolls until the whole square of a cell is visible. */
  reveal(cell: number): void {
    const at = this.placeOf(cell)!;
    if (at.y < 0) this.#scroll = this.top + at.y;
    else if (at.y + at.size > this.height) this.#scroll = this.top + at.y + at.size - this.height;
  }

  /** Drags the picture down by `y` pixels; returns the pixels left over at either end. */
  drag(y: number): number {
    const wanted = this.top - y;
    this.#scroll = Math.max(0, Math.min(wanted, this.grid!.height - this.height));
    return wanted - this.#scroll;
  }
}
