// Draws the visible part of a filter's bits on a canvas: squares shaded by fill ratio, numbers where there is room, and
// the marks of the current key on top.
import type { State } from "../lib/api";
import { colors, type Colors } from "../lib/colors.svelte";
import type { Marks } from "../lib/marks";
import { count } from "../lib/numbers";
import { t } from "../lib/words.svelte";
import type { Cells } from "./cells";
import { mark, markCursor, markLit } from "./drawing-marks";
import { header, type Grid, type Segment } from "./scale";
import type { Sight } from "./sight.svelte";

export interface Picture {
  filter: State;
  sight: Sight;
  cells: Cells;
  marks: Marks | null;
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
  top: number;
}

/** The visible squares of a segment, and a function for their values. */
interface Row {
  s: Segment;
  from: number;
  to: number;
  valueOf: (i: number) => number;
}

export function draw(canvas: HTMLCanvasElement, picture: Picture): void {
  const { filter, sight, cells, marks, waiting, lit, cursor } = picture;
  const { width, height, top } = sight;
  const grid = sight.grid!;
  const dense = Math.min(3, devicePixelRatio || 1);
  if (canvas.width !== Math.round(width * dense)) canvas.width = Math.round(width * dense);
  if (canvas.height !== Math.round(height * dense)) canvas.height = Math.round(height * dense);
  const ctx = canvas.getContext("2d")!;
  ctx.setTransform(dense, 0, 0, dense, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.imageSmoothingEnabled = false;
  const pen: Pen = { ctx, font: getComputedStyle(canvas).fontFamily, colors: colors(), grid, top };
  const lut = shades(pen.colors.unset, pen.colors.accent);
  const shade = shadeOfValues(filter);
  const { unit, size, segments } = grid;
  const counters = filter.filter.cell_bits === 4;
  for (const s of segments) {
    if (segments.length > 1 && s.top - top > 0 && s.top - top - header < height) nameLayer(pen, filter, s);
    const { from, to } = sight.visible(s);
    if (from >= to) continue;
    const piece = cells.of(s.layer, unit);
    const skip = piece?.first ?? 0;
    const row: Row = {
      s,
      from,
      to,
      valueOf: (i) => (waiting.includes(s.first + i) ? 0 : (piece?.data[i - skip] ?? 0)),
    };
    fillSquares(pen, row, (value) => lut[unit === 1 ? shade[value]! : Math.round(255 * Math.sqrt(value / unit))]!);
    if (unit === 1 && size >= 24) nameCells(pen, row, filter, shade);
    else if (unit === 1 && counters && size >= 12) countCells(pen, row);
  }
  for (const { cell, role } of marks?.cells ?? []) {
    const at = sight.placeOf(cell);
    const stripes = unit > 1 ? "none" : counters ? "beside" : "over";
    if (at && at.y + at.size >= 0 && at.y <= height) mark(ctx, pen.colors, at, { role, faint: marks!.faint, stripes });
  }
  const bright = lit >= 0 ? sight.placeOf(lit) : null;
  if (bright) markLit(ctx, pen.colors, bright);
  const at = cursor >= 0 ? sight.placeOf(cursor) : null;
  if (at) markCursor(ctx, pen.colors, at);
}

// ---- shades ----

function rgb(hex: string): [number, number, number] {
  const n = parseInt(hex.slice(1, 7), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

/** 256 shades from unset to set, in the canvas's pixel format. */
function shades(unset: string, set: string): Uint32Array {
  const [a, b] = [rgb(unset), rgb(set)];
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const [r, g, blue] = a.map((from, j) => Math.round(from + ((b[j]! - from) * i) / 255)) as [number, number, number];
    return ((255 << 24) | (blue << 16) | (g << 8) | r) >>> 0;
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

// ---- a layer ----

function nameLayer({ ctx, font, colors, grid, top }: Pen, filter: State, s: Segment): void {
  const l = filter.facts.layers[s.layer]!;
  ctx.font = `13px ${font}`;
  ctx.fillStyle = colors.quiet;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const words = { layer: s.layer + 1, keys: count(l.keys), capacity: count(l.capacity) };
  ctx.fillText(t("bits.layer", words), grid.left, s.top - top - header / 2);
}

const dots = document.createElement("canvas");

/** One pixel per square, scaled up, with gaps between large squares. */
function fillSquares({ ctx, colors, grid, top }: Pen, { s, from, to, valueOf }: Row, dotOf: (v: number) => number) {
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
  if (size < 4) return;
  ctx.fillStyle = colors.ground;
  const gap = size >= 16 ? 2 : size >= 8 ? 1 : 0.5;
  for (let x = 1; x <= wide; ++x) ctx.fillRect(left + x * size - gap, y, gap, rows * size);
  for (let r = 1; r <= rows; ++r) ctx.fillRect(left, y + r * size - gap, wide * size, gap);
}

/** The number of each cell, and the value of each counter. */
function nameCells({ ctx, font, colors, grid, top }: Pen, row: Row, filter: State, shade: Uint8Array): void {
  const { size, columns, left } = grid;
  const { s, from, to, valueOf } = row;
  const counters = filter.filter.cell_bits === 4;
  const aging = generationsOf(filter).length > 0;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (let i = from; i < to; ++i) {
    const value = valueOf(i);
    const x = left + (i % columns) * size + size / 2 - 1;
    const y = s.top - top + Math.floor(i / columns) * size + size / 2;
    const pale = aging && shade[value]! < 140;
    ctx.fillStyle = value === 0 || pale ? colors.text : colors.onAccent;
    const name = String(s.first + i + filter.filter.first_number);
    if (counters) {
      ctx.font = `9px ${font}`;
      ctx.fillText(name, x, y - size / 2 + 6);
      if (value > 0) {
        ctx.font = `bold ${Math.round(size * 0.45)}px ${font}`;
        ctx.fillText(String(value), x, y + 4);
      }
    } else {
      ctx.font = `${value ? "bold " : ""}${size >= 34 ? 13 : name.length > 3 ? 9 : 10}px ${font}`;
      ctx.fillText(name, x, y);
    }
  }
}

/** The values of counters, where there is no room for cell numbers. */
function countCells({ ctx, font, colors, grid, top }: Pen, { s, from, to, valueOf }: Row): void {
  const { size, columns, left } = grid;
  ctx.font = `${size - 4}px ${font}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillStyle = colors.onAccent;
  for (let i = from; i < to; ++i) {
    const value = valueOf(i);
    if (value === 0) continue;
    const x = left + (i % columns) * size + size / 2;
    ctx.fillText(String(value), x, s.top - top + Math.floor(i / columns) * size + size / 2);
  }
}
