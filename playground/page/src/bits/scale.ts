// Zoom levels of the picture: cells per square, and the size of a square.
import type { State } from "../lib/api";
import { gutterFor, lettersFor, type Letters, type Measure } from "./lettering";

export interface Level {
  /** Cells per square. */
  unit: number;
  /** Side of a square in pixels. */
  size: number;
}

export interface Segment {
  layer: number;
  first: number;
  cells: number;
  units: number;
  rows: number;
  /** Top of its first row, in pixels from the top of the whole picture. */
  top: number;
}

export interface Grid extends Level {
  columns: number;
  left: number;
  height: number;
  segments: Segment[];
  /** The cells are counters. */
  counters: boolean;
  /** The font of the numbers in the cells; null: they do not fit. */
  letters: Letters | null;
  /** The room for numbers of rows on the left; 0 if the cells have numbers. */
  gutter: number;
}

/** What the sizes of labels follow from: the longest number of a cell, and a function that measures it. */
export interface Widest {
  text: string;
  measure: Measure;
}

export const header = 24;
/** The largest are for projectors, where 16 of them fit. */
const sides = [66, 44, 34, 24, 16, 12, 8, 6, 4, 3, 2];

export function gridOf(state: State, level: Level, width: number, widest: Widest): Grid {
  const { unit, size } = level;
  const counters = state.filter.cell_bits === 4;
  const letters = unit > 1 ? null : lettersFor(size, widest.text, counters, widest.measure);
  const gutter = letters ? 0 : gutterFor(widest.text, widest.measure);
  let columns = Math.max(1, Math.floor((width - gutter) / size));
  if (columns >= 8 && size >= 24) columns -= columns % 8;
  const layers = state.facts.layers;
  let y = 0;
  const segments = layers.map((l, layer) => {
    const units = Math.ceil(l.cells / unit);
    const rows = Math.ceil(units / columns);
    const top = y + (layers.length > 1 ? header : 0);
    y = top + rows * size;
    return { layer, first: l.first_cell, cells: l.cells, units, rows, top };
  });
  // At the left edge of the text.
  return { unit, size, columns, left: gutter, height: y, segments, counters, letters, gutter };
}

/** Squares hold whole blocks, or parts that divide a block, because the API counts such ranges. */
function units(cells: number, block: number): number[] {
  const all = [1];
  const whole = block > 1 ? block : 64;
  for (let part = 64; 4 * part <= whole; part *= 4) if (whole % part === 0) all.push(part);
  for (let unit = whole; unit < cells; unit *= 4) all.push(unit);
  return all;
}

/** The level whose cells are closest in size to those of `wanted`, a level of another filter or width. */
export function nearest(levels: Level[], wanted: Level): number {
  const scale = (l: Level) => Math.log((l.size * l.size) / l.unit);
  let best = 0;
  for (let i = 1; i < levels.length; ++i) {
    if (Math.abs(scale(levels[i]!) - scale(wanted)) < Math.abs(scale(levels[best]!) - scale(wanted))) best = i;
  }
  return best;
}

/** All levels, from single cells to the whole filter, and the index of the default level. */
export function levelsOf(
  state: State,
  width: number,
  height: number,
  widest: Widest,
): { levels: Level[]; first: number } {
  const { cells, block_cells } = state.filter;
  const levels: Level[] = [];
  let last = Infinity;
  let enough = false;
  for (const unit of units(cells, block_cells)) {
    for (const size of sides) {
      if (size > 44 && 16 * size > width) continue;
      if (enough || (unit > 1 && (size > 16 || size < 4)) || (size * size) / unit >= last / 1.5) continue;
      levels.push({ unit, size });
      last = (size * size) / unit;
      enough = gridOf(state, { unit, size }, width, widest).height <= height;
    }
  }
  // By default, small filters show cell numbers or counters, medium ones cells, large ones blocks, and the largest the
  // whole.
  if (cells <= 2000) {
    const told = (l: Level) =>
      l.unit === 1 && (state.filter.cell_bits === 4 || gridOf(state, l, width, widest).letters !== null);
    return {
      levels,
      first: Math.max(
        0,
        levels.findLastIndex((l) => l.size >= 24 && told(l)),
      ),
    };
  }
  const block = Math.max(block_cells, 64);
  const wanted =
    cells <= 100_000
      ? (l: Level) => l.unit > 1 || l.size === 2
      : cells <= 10_000_000
        ? (l: Level) => l.unit > block || (l.unit === block && l.size === 4)
        : () => false;
  const limit = levels.findIndex(wanted);
  return {
    levels,
    first: limit < 0 ? levels.length - 1 : levels[limit]!.unit > 1 && cells <= 100_000 ? limit - 1 : limit,
  };
}
