// Draws the marks of the current key's cells and the cursor over the squares.
import type { Colors } from "../lib/colors.svelte";
import type { Role } from "../lib/marks";
import type { Place } from "./sight.svelte";

interface Mark {
  role: Role;
  /** The key is only being typed. */
  faint: boolean;
  /** Position of the stripes of shared cells: beside the number in a counter, and none on squares of several cells. */
  stripes: "over" | "beside" | "none";
}

/** Roles differ in shape: new cells have a thick bright frame, shared cells stripes, proofs a dashed
 * frame, lost cells a dotted one. */
export function mark(ctx: CanvasRenderingContext2D, colors: Colors, at: Place, { role, faint, stripes }: Mark): void {
  const large = at.size >= 16;
  const s = Math.max(at.size - (large ? 2 : 1), 9);
  const x = at.x + (at.size - s) / 2 - (large ? 1 : 0);
  const y = at.y + (at.size - s) / 2 - (large ? 1 : 0);
  const set = role === "new" || role === "shared";
  ctx.save();
  if (!large) {
    // If the square is smaller than its mark, draw it again on its own background.
    ctx.fillStyle = colors.ground;
    ctx.fillRect(x - 1.5, y - 1.5, s + 3, s + 3);
    ctx.fillStyle = role === "new" ? colors.fresh : set ? colors.accent : colors.unset;
    ctx.fillRect(x, y, s, s);
  }
  ctx.globalAlpha = faint ? 0.7 : 1;
  if (role === "shared" && large && stripes !== "none") {
    ctx.beginPath();
    if (stripes === "beside") for (const edge of [x, x + 0.8 * s]) ctx.rect(edge, y, 0.2 * s, s);
    else ctx.rect(x, y, s, s);
    ctx.clip();
    ctx.beginPath();
    for (let d = -s; d < s; d += Math.max(4, s / 4)) {
      ctx.moveTo(x + d, y + s);
      ctx.lineTo(x + d + s, y);
    }
    ctx.lineWidth = Math.max(1, s / 22);
    ctx.strokeStyle = colors.onAccent;
    ctx.globalAlpha *= 0.75;
    ctx.stroke();
    ctx.globalAlpha = faint ? 0.7 : 1;
  }
  ctx.setLineDash(role === "lost" ? [2, 3] : role !== "proof" ? [] : large ? [4, 3] : [3, 2]);
  ctx.lineWidth = role === "looked" || faint || !large ? 1.5 : role === "new" ? 4 : 3;
  const strokes = { new: large ? colors.fresh : colors.text, looked: colors.quiet, lost: colors.bad } as const;
  ctx.strokeStyle = role in strokes ? strokes[role as keyof typeof strokes] : colors.maybe;
  const inset = ctx.lineWidth / 2;
  ctx.strokeRect(x + inset, y + inset, s - 2 * inset, s - 2 * inset);
  ctx.restore();
}

/** A thick frame within a square, or around a small one. */
export function markLit(ctx: CanvasRenderingContext2D, colors: Colors, at: Place): void {
  const s = Math.max(at.size - 6, 10);
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
