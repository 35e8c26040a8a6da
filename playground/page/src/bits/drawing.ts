// Draws the visible part of a filter's bits on a canvas: squares shaded by fill ratio, the marks of the current key and
// the lines to them, and labels on top. lettering.ts places the labels.
import type { State } from "../lib/api";
import { colors, type Colors } from "../lib/colors.svelte";
import { contrast, rgb, type Rgb } from "../lib/contrast";
import type { Marks } from "../lib/marks";
import { widthOf } from "../lib/measured.svelte";
import { count } from "../lib/numbers";
import { t } from "../lib/words.svelte";
import type { Cells } from "./cells";
import { mark, markCursor, markLit } from "./drawing-marks";
import { cellLabels, gapOf, rowLabels, type Label, type Window } from "./lettering";
import { drawLines, linesOf } from "./lines";
import { header, type Grid, type Segment } from "./scale";
import type { Sight } from "./sight.svelte";

export interface Picture {
  filter: State;
  sight: Sight;
  cells: Cells;
  marks: Marks | null;
  /** Lines lead from the key to its cells. */
  lined: boolean;
  /** Cells that are still drawn as not set. */
  waiting: number[];
  /** A highlighted cell; -1: none. */
  lit: number;
  /** The selected cell; -1: none. */
  cursor: number;
}

/** Shared state of all drawing functions. */
interface Pen {
  ctx: CanvasRenderingContext2D;
  font: string;
  colors: Colors;
  grid: Grid;
}

/** The visible squares of a segment, and a function for their values. */
interface Row extends Window {
  s: Segment;
  valueOf: (i: number) => number;
}

export function draw(canvas: HTMLCanvasElement, picture: Picture): void {
  const { filter, sight, cells, marks, lined, waiting, lit, cursor } = picture;
  const { width, height, top } = sight;
  const grid = sight.grid!;
  const dense = Math.min(3, devicePixelRatio || 1);
  if (canvas.width !== Math.round(width * dense)) canvas.width = Math.round(width * dense);
  if (canvas.height !== Math.round(height * dense)) canvas.height = Math.round(height * dense);
  const ctx = canvas.getContext("2d")!;
  ctx.setTransform(dense, 0, 0, dense, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.imageSmoothingEnabled = false;
  const pen: Pen = { ctx, font: getComputedStyle(canvas).fontFamily, colors: colors(), grid };
  const shades = shadesOf(pen.colors);
  const shade = shadeOfValues(filter);
  const { unit, size, segments, counters } = grid;
  const rows: Row[] = segments.flatMap((s) => {
    const { from, to } = sight.visible(s);
    if (from >= to) return [];
    const piece = cells.of(s.layer, unit);
    const skip = piece?.first ?? 0;
    const valueOf = (i: number) => (waiting.includes(s.first + i) ? 0 : (piece?.data[i - skip] ?? 0));
    return [{ s, from, to, top, height, valueOf }];
  });
  for (const row of rows) {
    fillSquares(
      pen,
      row,
      (value) => shades[unit === 1 ? shade[value]! : Math.round(255 * Math.sqrt(value / unit))]!.dot,
    );
  }
  for (const { cell, role } of marks?.cells ?? []) {
    const at = sight.placeOf(cell);
    if (at && at.y + at.size >= 0 && at.y <= height) mark(ctx, pen.colors, at, role, marks!.faint);
  }
  const lines = lined ? linesOf(marks, sight) : [];
  drawLines(ctx, pen.colors, lines, marks?.faint ?? false);
  const bright = lit >= 0 ? sight.placeOf(lit) : null;
  if (bright) markLit(ctx, pen.colors, bright);
  const at = cursor >= 0 ? sight.placeOf(cursor) : null;
  if (at) markCursor(ctx, pen.colors, at);

  const nameOf = (cell: number) => count(cell + filter.filter.first_number);
  for (const s of segments.length > 1 ? segments : []) nameLayer(pen, sight, filter, s);
  for (const row of rows) {
    for (const label of rowLabels(grid, row.s, row, nameOf, widthOf)) write(pen, label, pen.colors.quiet);
    if (unit > 1) continue;
    const inkOf = (i: number) => shades[shade[row.valueOf(i)]!]!;
    for (const label of cellLabels(grid, row.s, row, nameOf, widthOf)) {
      const { fill, ink, plate } = inkOf(label.cell - row.s.first);
      write(pen, label, ink, plate || (lines.length > 0 ? fill : ""));
    }
    if (counters && size >= 12) countCells(pen, row, inkOf);
  }
}

// ---- shades ----

interface Shade {
  /** In the canvas's pixel format. */
  dot: number;
  fill: string;
  /** The color of text on it. */
  ink: string;
  /** A background for the text if no ink has enough contrast; empty: none. */
  plate: string;
}

/** 256 shades from unset to set. */
function shadesOf({ unset, accent, onAccent, text, ground }: Colors): Shade[] {
  const [a, b] = [rgb(unset), rgb(accent)];
  return Array.from({ length: 256 }, (_, i) => {
    const color = a.map((from, j) => Math.round(from + ((b[j]! - from) * i) / 255)) as Rgb;
    const dot = ((255 << 24) | (color[2] << 16) | (color[1] << 8) | color[0]) >>> 0;
    const ink = [text, onAccent, ground].find((one) => contrast(rgb(one), color) >= 4.5);
    return { dot, fill: `rgb(${color.join()})`, ink: ink ?? text, plate: ink ? "" : ground };
  });
}

const generationsOf = (filter: State) => filter.facts.window?.generations ?? [];

/** The shade of each cell value; for windows, by the newest generation in the cell. */
function shadeOfValues(filter: State): Uint8Array {
  const shade = new Uint8Array(256).fill(255);
  shade[0] = 0;
  const newest = generationsOf(filter).map((g) => g.lane);
  if (newest.length === 0) return shade;
  for (let value = 1; value < 256; ++value) {
    const age = newest.findIndex((lane) => (value >> lane) & 1);
    shade[value] = age < 0 ? 0 : Math.round(255 * (1 - (0.7 * age) / 8));
  }
  return shade;
}

const dots = document.createElement("canvas");

/** One pixel per square, scaled up, with gaps between large squares. */
function fillSquares({ ctx, colors, grid }: Pen, { s, from, to, top, valueOf }: Row, dotOf: (v: number) => number) {
  const { size, columns, left } = grid;
  const rows = Math.ceil((to - from) / columns);
  const wide = Math.min(columns, s.units);
  const small = dots.getContext("2d")!;
  const picture = small.createImageData(wide, rows);
  const dot = new Uint32Array(picture.data.buffer);
  for (let i = from; i < to; ++i) dot[i - from] = dotOf(valueOf(i));
  dots.width = wide;
  dots.height = rows;
  small.putImageData(picture, 0, 0);
  const y = s.top - top + (from / columns) * size;
  ctx.drawImage(dots, 0, 0, wide, rows, left, y, wide * size, rows * size);
  const gap = gapOf(size);
  if (gap === 0) return;
  ctx.fillStyle = colors.ground;
  for (let x = 1; x <= wide; ++x) ctx.fillRect(left + x * size - gap, y, gap, rows * size);
  for (let r = 1; r <= rows; ++r) ctx.fillRect(left, y + r * size - gap, wide * size, gap);
}

// ---- labels ----

function write({ ctx, font }: Pen, label: Label, ink: string, plate = ""): void {
  const { text, x, y, width, size, bold } = label;
  if (plate !== "") {
    ctx.fillStyle = plate;
    ctx.fillRect(x - width / 2 - 1, y - size / 2 - 1, width + 2, size + 2);
  }
  ctx.font = `${bold ? "bold " : ""}${size}px ${font}`;
  ctx.fillStyle = ink;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillText(text, x, y);
}

/** The name of a layer above its cells, if it is visible as a whole. */
function nameLayer(pen: Pen, { width, height, top }: Sight, filter: State, s: Segment): void {
  const l = filter.facts.layers[s.layer]!;
  const size = 13;
  const y = s.top - top - header / 2;
  if (y < size / 2 || y > height - size / 2) return;
  const text = t("bits.layer", { layer: s.layer + 1, keys: count(l.keys), capacity: count(l.capacity) });
  const wide = widthOf(text, size);
  const x = Math.max(0, Math.min(pen.grid.left, width - wide)) + wide / 2;
  write(pen, { text, x, y, width: wide, size, bold: false, cell: s.first }, pen.colors.quiet);
}

/** The values of counters that are not 0: below their numbers, or in the middle if there are none. */
function countCells(pen: Pen, { s, from, to, top, height, valueOf }: Row, inkOf: (i: number) => Shade): void {
  const { size, columns, left, letters } = pen.grid;
  const side = size - gapOf(size);
  const font = letters ? Math.round(0.4 * size) : Math.round(0.6 * side);
  for (let i = from; i < to; ++i) {
    const value = valueOf(i);
    const y = s.top - top + Math.floor(i / columns) * size + (letters ? 0.62 : 0.5) * side;
    if (value === 0 || y < font / 2 || y > height - font / 2) continue;
    const text = String(value);
    const x = left + (i % columns) * size + side / 2;
    const { ink, plate } = inkOf(i);
    write(pen, { text, x, y, width: widthOf(text, font, true), size: font, bold: true, cell: s.first + i }, ink, plate);
  }
}
