/**
 * Keeps the focus in a key field after a lookup and selects its text, so that the next key can be typed at once. On a
 * device without a mouse, a field that had no focus gets none: its keyboard would hide the answer.
 */
export function readyForNext(field: HTMLInputElement | undefined): void {
  if (!field || (document.activeElement !== field && matchMedia("(pointer: coarse)").matches)) return;
  field.focus();
  field.select();
}
