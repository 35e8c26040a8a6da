// Runs actions one after another, because keys may be typed faster than the server answers. Errors are shown beside the
// key or above the other actions; outages and deleted filters have their own messages.
import { api, ApiError, reason, type Key } from "../lib/api";

interface On {
  /** The queue is empty. */
  idle: () => void;
  /** The server answers again after an outage. */
  back: () => void;
}

export class Queue {
  /** Errors of the last action: `problem` is shown beside the key, `trouble` above the other actions. */
  problem = $state("");
  trouble = $state("");
  /** The last action tried to remove this key, which only force can do. */
  refused = $state.raw<Key | null>(null);
  /** The action takes long enough to show it. */
  working = $state(false);
  away = $state(false);
  gone = $state(false);
  /** The reader has left the view. */
  left = false;
  #turn: Promise<void> = Promise.resolve();
  #waiting = 0;
  #slow: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly on: On) {}

  get empty(): boolean {
    return this.#waiting === 0;
  }

  /** Resolves when all waiting actions have ended. */
  get settled(): Promise<void> {
    return this.#turn;
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
        if (!this.lost(e)) {
          if (beside === "key") this.problem = reason(e);
          else this.trouble = reason(e);
        }
      }
      if (--this.#waiting > 0) return;
      clearTimeout(this.#slow);
      this.working = false;
      this.on.idle();
    });
    return this.#turn;
  }

  /** Handles an outage or a deleted filter; false: another error. */
  lost = (e: unknown): boolean => {
    if (!(e instanceof ApiError)) return false;
    if (e.status === 0) {
      if (!this.away) {
        this.away = true;
        setTimeout(() => void this.#comeBack(), 1000);
      }
      return true;
    }
    if (e.status !== 404 || e.problem.where !== "id") return false;
    this.gone = true;
    return true;
  };

  async #comeBack(): Promise<void> {
    if (this.left) return;
    try {
      await api.about();
    } catch {
      setTimeout(() => void this.#comeBack(), 2000);
      return;
    }
    if (this.left) return;
    this.away = false;
    this.on.back();
  }
}
