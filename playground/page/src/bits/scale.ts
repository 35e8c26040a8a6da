// Zoom levels of the picture: cells per square, and the size of a square.
import type { State } from "../lib/api";

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
}

export const header = 24;
const sides = [44, 34, 24, 16, 12, 8, 6, 4, 3, 2];

export function gridOf(state: State, level: Level, width: number): Grid {
  const { unit, size } = level;
  let columns = Math.max(1, Math.floor(width / size));
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
  const widest = Math.min(columns, Math.max(...segments.map((s) => s.units)));
  return { unit, size, columns, left: Math.floor((width - widest * size) / 2), height: y, segments };
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
export function levelsOf(state: State, width: number, height: number): { levels: Level[]; first: number } {
  const { cells, block_cells } = state.filter;
  const levels: Level[] = [];
  let last = Infinity;
  let enough = false;
  for (const unit of units(cells, block_cells)) {
    for (const size of sides) {
      if (enough || (unit > 1 && (size > 16 || size < 4)) || (size * size) / unit >= last / 1.5) continue;
      levels.push({ unit, size });
      last = (size * size) / unit;
      enough = gridOf(state, { unit, size }, width).height <= height;
    }
  }
  // By default, small filters show cell numbers, medium ones cells, large ones blocks, and the largest the whole.
  const block = Math.max(block_cells, 64);
  const wanted =
    cells <= 2000
      ? (l: Level) => l.unit > 1 || l.size === 24
      : cells <= 100_000
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
