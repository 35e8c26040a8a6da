/** About `most` round integers in a range, as axis ticks for counts. */
export function integers(from: number, to: number, most: number): number[] {
  let step = 1;
  for (let i = 0; (to - from) / step > most; ++i) step = [2, 5, 10][i % 3]! * 10 ** Math.floor(i / 3);
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, i) => (first + i) * step);
}
