// What was done to a filter since it was empty, as far as the page can do it again: for links, for another filter of the
// same keys, and for one that the server has given up.
import { api, type Key, type State } from "./api";

export type Step =
  | { keys: Key[] }
  | { addresses: { seed: string; first: number; count: number } }
  | { remove: Key; by_force: boolean; found: boolean }
  | { tick: number };

export class Journal {
  static readonly most = 100_000;
  #steps: Step[] = [];
  #keys = 0;
  #whole = $state(true);

  /** False: too much was done, or it was not done here. */
  get whole(): boolean {
    return this.#whole;
  }

  get empty(): boolean {
    return this.#steps.length === 0;
  }

  push(step: Step): void {
    if ("keys" in step) this.#keys += step.keys.length;
    if (this.#keys > Journal.most) this.lose();
    if (this.#whole) this.#steps.push(step);
  }

  pop(): void {
    const step = this.#steps.pop();
    if (step && "keys" in step) this.#keys -= step.keys.length;
  }

  clear(): void {
    this.#steps = [];
    this.#keys = 0;
    this.#whole = true;
  }

  lose(): void {
    this.#steps = [];
    this.#whole = false;
  }

  /** The steps that put the keys in that are still in, into whatever filter; null if nobody knows. */
  adds(): Step[] | null {
    if (!this.#whole) return null;
    const adds: Step[] = [];
    for (const step of this.#steps) {
      if ("keys" in step) adds.push({ keys: [...step.keys] });
      else if ("addresses" in step) adds.push(step);
      else if ("remove" in step) {
        for (const add of adds) {
          if (!("keys" in add)) continue;
          const at = add.keys.findLastIndex((one) => sameKey(one, step.remove));
          if (at < 0) continue;
          add.keys.splice(at, 1);
          if (!step.by_force) break;
        }
      }
    }
    return adds.filter((step) => !("keys" in step) || step.keys.length > 0);
  }

  /**
   * At most so many keys that make the very same bits; null if there are no such. Where a key was taken out nobody knows
   * that: a counter that was full once does not count down.
   */
  few(most: number): Key[] | null {
    if (!this.#whole || this.#steps.some((s) => "tick" in s || "addresses" in s || ("remove" in s && s.found))) {
      return null;
    }
    const keys = this.adds()!.flatMap((step) => ("keys" in step ? step.keys : []));
    return keys.length > most ? null : keys;
  }

  steps(): Step[] {
    return [...this.#steps];
  }
}

function sameKey(a: Key, b: Key): boolean {
  return typeof a === "string" || typeof b === "string" ? a === b : a.base64 === b.base64;
}

/** Does it all again with another filter; how many keys came, and its state. */
export async function doAgain(made: State, steps: Step[]): Promise<{ state: State; count: number }> {
  let state = made;
  let count = 0;
  for (const step of steps) {
    if ("keys" in step || "addresses" in step) {
      const said = await api.add(made.id, step);
      state = said.state;
      count += said.count;
    } else if ("remove" in step) state = (await api.remove(made.id, step.remove, step.by_force)).state;
    else state = await api.tick(made.id, step.tick);
  }
  return { state, count };
}
