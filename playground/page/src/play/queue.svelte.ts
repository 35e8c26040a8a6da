// One thing after another: keys may be typed faster than they are answered. What goes wrong is told beside the key, or above
// the other actions; that the server is away, or no longer has the filter, is told in words of its own.
import { api, ApiError, reason, type Key } from "../lib/api";

interface On {
  /** Nothing waits any more. */
  idle: () => void;
  /** The server was away, and answers again. */
  back: () => void;
}

export class Queue {
  /** What went wrong with the last action, beside the key and above the others. */
  problem = $state("");
  trouble = $state("");
  /** The last action was to remove this key, which only force can. */
  refused = $state.raw<Key | null>(null);
  /** Something takes long enough to be told. */
  working = $state(false);
  away = $state(false);
  gone = $state(false);
  /** The view was left. */
  left = false;
  #turn: Promise<void> = Promise.resolve();
  #waiting = 0;
  #slow: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly on: On) {}

  get empty(): boolean {
    return this.#waiting === 0;
  }

  /** When all that waits now has ended. */
  get settled(): Promise<void> {
    return this.#turn;
  }

  /** Runs one action, after those before it; `failed` is called if it fails, before that is told. */
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

  /** Whether it is that the server is away, or that the filter is no longer there. */
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
