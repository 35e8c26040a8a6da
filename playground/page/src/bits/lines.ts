// The lines from the key above the picture down to its cells. Above the picture, they are SVG (Lines.svelte); in the
// picture, they are drawn on the canvas, below the numbers of the cells.
import type { Colors } from "../lib/colors.svelte";
import type { Marks, Role } from "../lib/marks";
import type { Sight } from "./sight.svelte";

/** Height of the key and the lines above the picture, in pixels. */
export const above = 46;
/** Where the lines begin, below the key. */
const start = 30;

export interface Line {
  cell: number;
  role: Role;
  /** The path, in pixels from the corner of the space above the picture. */
  d: string;
  x: number;
  y: number;
}

export function linesOf(marks: Marks | null, sight: Sight): Line[] {
  return (marks?.cells ?? []).flatMap(({ cell, role }) => {
    const at = sight.placeOf(cell);
    if (!at || at.y <= -at.size / 2 || at.y >= sight.height) return [];
    const [from, x, y] = [sight.width / 2, at.x + at.size / 2 - 1, above + at.y + 2];
    const half = start + (y - start) / 2;
    return [{ cell, role, x, y, d: `M${from} ${start} C${from} ${half} ${x} ${half} ${x} ${y}` }];
  });
}

/** Dashes differ by role, as in Lines.svelte. */
const dashes: Record<Role, number[]> = { new: [], shared: [], proof: [5, 4], looked: [5, 4], lost: [2, 4] };

export function drawLines(ctx: CanvasRenderingContext2D, colors: Colors, lines: Line[], faint: boolean): void {
  const { accent, maybe, quiet, bad, ground } = colors;
  const strokes: Record<Role, string> = { new: accent, shared: accent, proof: maybe, looked: quiet, lost: bad };
  ctx.save();
  ctx.translate(0, -above);
  ctx.globalAlpha = faint ? 0.45 : 1;
  for (const { role, d, x, y } of lines) {
    const path = new Path2D(d);
    // An outline, because lines cross set bits of the same color.
    ctx.setLineDash([]);
    ctx.strokeStyle = ground;
    ctx.lineWidth = 4;
    ctx.stroke(path);
    ctx.setLineDash(dashes[role]);
    ctx.strokeStyle = ctx.fillStyle = strokes[role];
    ctx.lineWidth = 1.5;
    ctx.stroke(path);
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.arc(x, y, 3, 0, 2 * Math.PI);
    ctx.fill();
    ctx.strokeStyle = ground;
    ctx.lineWidth = 1;
    ctx.stroke();
  }
  ctx.restore();
}
