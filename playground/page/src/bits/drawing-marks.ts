// Draws the marks of the current key's cells, the highlighted cell and the cursor over the squares. Marks are frames,
// which leave room for the labels of the cells.
import type { Colors } from "../lib/colors.svelte";
import type { Role } from "../lib/marks";
import { frameOf, gapOf } from "./lettering";
import type { Place } from "./sight.svelte";

/** Marks of smaller squares are larger than their squares. */
const smallest = 9;

/** Width and period of the stripes of a frame, in pixels. */
const stripe = 3;
const period = 6;

/**
 * Roles differ in shape: the frame of a new cell is solid, that of a cell that was set before is striped, that of a
 * proof is dashed, and that of a lost cell is dotted. `faint`: the key is only being typed.
 */
export function mark(ctx: CanvasRenderingContext2D, colors: Colors, at: Place, role: Role, faint: boolean): void {
  const large = at.size >= 16;
  const side = at.size - gapOf(at.size);
  const s = Math.max(side, smallest);
  const x = at.x + (side - s) / 2;
  const y = at.y + (side - s) / 2;
  ctx.save();
  if (!large) {
    // If the square is smaller than its mark, draw it again on its own background.
    ctx.fillStyle = colors.ground;
    ctx.fillRect(x - 1.5, y - 1.5, s + 3, s + 3);
    ctx.fillStyle = role === "new" ? colors.fresh : role === "shared" ? colors.accent : colors.unset;
    ctx.fillRect(x, y, s, s);
  }
  ctx.globalAlpha = faint ? 0.7 : 1;
  if (role === "shared") {
    striped(ctx, colors, { x, y, size: s }, large ? frameOf(at.size) : 2);
    ctx.restore();
    return;
  }
  ctx.setLineDash(role === "lost" ? [2, 3] : role !== "proof" ? [] : large ? [4, 3] : [3, 2]);
  ctx.lineWidth = role === "looked" || faint || !large ? 1.5 : role === "new" ? frameOf(at.size) : 3;
  const strokes = { new: large ? colors.fresh : colors.text, looked: colors.quiet, lost: colors.bad } as const;
  ctx.strokeStyle = role === "proof" ? colors.maybe : strokes[role];
  const inset = ctx.lineWidth / 2;
  ctx.strokeRect(x + inset, y + inset, s - 2 * inset, s - 2 * inset);
  ctx.restore();
}

/** A frame of diagonal stripes. */
function striped(ctx: CanvasRenderingContext2D, colors: Colors, { x, y, size }: Place, width: number): void {
  ctx.beginPath();
  ctx.rect(x, y, size, size);
  ctx.rect(x + width, y + width, size - 2 * width, size - 2 * width);
  ctx.clip("evenodd");
  ctx.fillStyle = colors.ground;
  ctx.fillRect(x, y, size, size);
  ctx.beginPath();
  for (let d = -size; d < size; d += period * Math.SQRT2) {
    ctx.moveTo(x + d, y + size);
    ctx.lineTo(x + d + size, y);
  }
  ctx.setLineDash([]);
  ctx.lineWidth = stripe;
  ctx.lineCap = "square";
  ctx.strokeStyle = colors.maybe;
  ctx.stroke();
}

/** A thick frame around a square, on the gaps. */
export function markLit(ctx: CanvasRenderingContext2D, colors: Colors, at: Place): void {
  const s = Math.max(at.size, 12);
  ctx.setLineDash([]);
  for (const [width, color] of [
    [6, colors.ground],
    [3, colors.text],
  ] as const) {
    ctx.lineWidth = width;
    ctx.strokeStyle = color;
    ctx.strokeRect(at.x + (at.size - s) / 2 - 1, at.y + (at.size - s) / 2 - 1, s, s);
  }
}

/** A frame, larger than a small square. */
export function markCursor(ctx: CanvasRenderingContext2D, colors: Colors, at: Place): void {
  const s = Math.max(at.size, 8);
  ctx.setLineDash([]);
  ctx.strokeStyle = colors.text;
  ctx.lineWidth = 2;
  ctx.strokeRect(at.x + (at.size - s) / 2, at.y + (at.size - s) / 2, s, s);
}
