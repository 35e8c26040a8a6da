// The contrast of two colors, as defined by WCAG 2: from 1 to 21; text needs 4.5.

export type Rgb = [number, number, number];

/** The channels of "#0f766e". */
export function rgb(hex: string): Rgb {
  const n = parseInt(hex.slice(1, 7), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

function luminance(color: Rgb): number {
  const [r, g, b] = color.map((c) => (c <= 10 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}
