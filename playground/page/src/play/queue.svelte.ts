// Runs actions one after another, because keys may be typed faster than they are answered. Errors are shown beside the
// key or above the other actions.
import { reason, type Key } from "../lib/api";

export class Queue {
  /** Errors of the last action: `problem` is shown beside the key, `trouble` above the other actions. */
  problem = $state("");
  trouble = $state("");
  /** The last action tried to remove this key, which only force can do. */
  refused = $state.raw<Key | null>(null);
  /** The action takes long enough to show it. */
  working = $state(false);
  #turn: Promise<void> = Promise.resolve();
  #waiting = 0;
  #slow: ReturnType<typeof setTimeout> | undefined;

  /** `idle` is called when the queue is empty. */
  constructor(private readonly idle: () => void) {}

  get empty(): boolean {
    return this.#waiting === 0;
  }

  /** Runs one action after the previous ones; `failed` is called before its error is shown. */
  act(work: () => Promise<void>, beside: "key" | "actions" = "actions", failed?: () => void): Promise<void> {
    if (++this.#waiting === 1) this.#slow = setTimeout(() => (this.working = true), 400);
    this.#turn = this.#turn.then(async () => {
      this.problem = this.trouble = "";
      this.refused = null;
      try {
        await work();
      } catch (e) {
        failed?.();
        if (beside === "key") this.problem = reason(e);
        else this.trouble = reason(e);
      }
      if (--this.#waiting > 0) return;
      clearTimeout(this.#slow);
      this.working = false;
      this.idle();
    });
    return this.#turn;
  }
}
