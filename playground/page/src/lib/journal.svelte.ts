// The steps since the filter was empty, as far as the page can repeat them: for links, for another filter with the same
// keys, and for a filter that the server deleted.
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

  /** False: there were too many steps, or steps outside this page. */
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

  /** Steps that insert the present keys into any filter; null: unknown. */
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
   * Up to `most` keys that produce the same bits; null: there are none. After a removal, this is unknown, because a
   * counter that was full once is not decremented.
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

/** Repeats the steps on another filter; returns the number of inserted keys and the state. */
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
