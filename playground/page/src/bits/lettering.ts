// The labels of the picture and their places: numbers in the cells if they fit, otherwise numbers beside the rows.
import type { Grid, Segment } from "./scale";

/** The width of a text in pixels. */
export type Measure = (text: string, size: number, bold: boolean) => number;

export interface Letters {
  /** Font size in pixels. */
  size: number;
  bold: boolean;
}

export interface Label extends Letters {
  text: string;
  /** The center, in pixels from the corner of the canvas. */
  x: number;
  y: number;
  width: number;
  /** The labeled cell, or the first cell of the labeled row. */
  cell: number;
}

/** The space between squares, at the right and the bottom of each. */
export const gapOf = (size: number): number => (size >= 16 ? 2 : size >= 8 ? 1 : size >= 4 ? 0.5 : 0);
/** The width of the frame of a marked square; its label is within the frame. */
export const frameOf = (size: number): number => (size >= 34 ? 4 : size >= 16 ? 3 : 1.5);

const smallest = 9;
const ruler = 11;

/** The largest font in which the widest number fits into a cell; null: it does not fit in a readable one. */
export function lettersFor(size: number, widest: string, counters: boolean, measure: Measure): Letters | null {
  // A counter has its number above its value.
  if (size < (counters ? 34 : 24)) return null;
  const room = size - gapOf(size) - 2 * frameOf(size) - 1;
  const largest = counters ? (size >= 44 ? 11 : smallest) : size > 44 ? 20 : Math.min(13, Math.round(0.45 * size));
  for (const bold of counters ? [false] : [true, false]) {
    for (let font = largest; font >= smallest; --font) {
      if (measure(widest, font, bold) <= room) return { size: font, bold };
    }
  }
  return null;
}

/** The room for numbers beside the rows. */
export const gutterFor = (widest: string, measure: Measure): number => Math.ceil(measure(widest, ruler, false)) + 8;

/** Every how many rows are numbered: 1, 2, 5, 10, ... */
export function rowsPerLabel(size: number): number {
  let every = 1;
  for (let i = 0; every * size < 1.5 * ruler; ++i) every = [2, 5, 10][i % 3]! * 10 ** Math.floor(i / 3);
  return every;
}

/** The visible squares of a segment, the height of the canvas, and how much of the picture is hidden above it. */
export interface Window {
  from: number;
  to: number;
  top: number;
  height: number;
}

const whole = (label: Label, { height }: Window) =>
  label.y - label.size / 2 >= 0 && label.y + label.size / 2 <= height ? [label] : [];

/** The numbers of the cells that are visible as a whole. */
export function cellLabels(
  grid: Grid,
  s: Segment,
  seen: Window,
  nameOf: (cell: number) => string,
  measure: Measure,
): Label[] {
  const { letters, size, columns, left, counters } = grid;
  if (!letters) return [];
  const side = size - gapOf(size);
  const labels: Label[] = [];
  for (let i = seen.from; i < seen.to; ++i) {
    const text = nameOf(s.first + i);
    const x = left + (i % columns) * size + side / 2;
    const y = s.top - seen.top + Math.floor(i / columns) * size;
    const down = counters ? frameOf(size) + 1 + letters.size / 2 : side / 2;
    const width = measure(text, letters.size, letters.bold);
    labels.push(...whole({ ...letters, text, x, y: y + down, width, cell: s.first + i }, seen));
  }
  return labels;
}

/** The numbers of the rows' first cells, left of the picture. */
export function rowLabels(
  grid: Grid,
  s: Segment,
  seen: Window,
  nameOf: (cell: number) => string,
  measure: Measure,
): Label[] {
  const { gutter, size, columns, left, unit } = grid;
  if (gutter === 0) return [];
  const every = rowsPerLabel(size);
  const labels: Label[] = [];
  const first = Math.floor(seen.from / columns / every) * every;
  for (let row = first; row * columns < seen.to; row += every) {
    const cell = s.first + row * columns * unit;
    const text = nameOf(cell);
    const width = measure(text, ruler, false);
    const middle = s.top - seen.top + (row + 0.5) * size;
    if (middle < 0 || middle > seen.height) continue;
    // The number of a thin row at the edge moves into the picture.
    const y = Math.max(ruler / 2, Math.min(seen.height - ruler / 2, middle));
    const label = { text, size: ruler, bold: false, x: left - 6 - width / 2, y, width, cell };
    const above = labels.at(-1);
    if (!above || y - above.y >= ruler) labels.push(label);
  }
  return labels;
}
