// Where the text about a square is shown: beside the square, and within the window.

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Space between the text and the square, and between the text and the edge of the window. */
const gap = 6;

/** The corner of a text of this size: below the square if there is room, otherwise above it or at one of its sides. */
export function beside(square: Box, text: Size, window: Size): { left: number; top: number } {
  const within = (at: number, size: number, all: number) => Math.max(gap, Math.min(at, all - size - gap));
  const left = within(square.left, text.width, window.width);
  if (square.bottom + text.height + 2 * gap <= window.height) return { left, top: square.bottom + gap };
  if (square.top - text.height - 2 * gap >= 0) return { left, top: square.top - gap - text.height };
  const top = within(square.top, text.height, window.height);
  const fits = square.right + text.width + 2 * gap <= window.width;
  return { left: fits ? square.right + gap : square.left - gap - text.width, top };
}
