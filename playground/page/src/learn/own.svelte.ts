// The reader's own key: the last one that the reader looked up in chapter 1. Later chapters use it again. It is kept in
// this browser.
const name = "learn.key";

let typed = $state(localStorage.getItem(name) ?? "");

/** Empty if the reader has looked up no key. */
export const ownKey = (): string => typed;

/** A key that chapters do not add: the reader's own, or the city that chapter 3 proves absent. */
export const absentKey = (added: readonly string[]): string =>
  typed === "" || added.includes(typed) ? "Berlin" : typed;

/** A key for a button or a heading. */
export const label = (key: string): string => (key.length <= 40 ? key : `${key.slice(0, 30)}…`);

export function keepKey(key: string): void {
  typed = key;
  localStorage.setItem(name, key);
}
