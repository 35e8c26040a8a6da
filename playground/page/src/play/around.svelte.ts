// What is shown around the bits: the reference set, page by page, and the FPR curve.
import { api, reason, type Key, type Point } from "../lib/api";
import type { Played } from "./played.svelte";
import type { Queue } from "./queue.svelte";

const page = 100;

export interface Listed {
  key: Key;
  copies: number;
  /** The window has dropped the key. */
  forgotten?: boolean;
}

export class Around {
  keys = $state.raw<Listed[]>([]);
  points = $state.raw<Point[]>([]);
  #listed = $state(0);
  #ever = $state(0);
  #refreshes = 0;
  #refreshed: Promise<void> = Promise.resolve();

  constructor(
    private readonly played: Played,
    private readonly queue: Queue,
  ) {}

  /** Not all keys are listed yet. */
  get more(): boolean {
    return this.#listed < this.#ever;
  }

  /** Called once after a series of queued actions. */
  refresh(): void {
    this.#refreshed = this.#refresh();
  }

  async #refresh(): Promise<void> {
    const { id, truth, filter } = this.played.filter!;
    const mine = ++this.#refreshes;
    const late = () => mine !== this.#refreshes || id !== this.played.filter!.id;
    try {
      const [list, curve] = await Promise.all([
        !truth
          ? null
          : filter.family === "windowed"
            ? newest(id)
            : api.keys(id, 0, Math.max(page, Math.min(this.#listed, 1000))),
        api.curve(id),
      ]);
      if (late()) return;
      this.keys = isIn(list?.keys ?? []);
      this.#listed = list?.keys.length ?? 0;
      this.#ever = list?.total ?? 0;
      this.points = curve.points;
    } catch (e) {
      if (!late()) this.queue.trouble = reason(e);
    }
  }

  async listMore(): Promise<void> {
    await this.#refreshed;
    const set = await api.keys(this.played.filter!.id, this.#listed, page);
    this.keys = [...this.keys, ...isIn(set.keys)];
    this.#listed += set.keys.length;
  }
}

/** The added keys that were not removed. */
function isIn(keys: Listed[]): Listed[] {
  return keys.filter((one) => one.copies > 0);
}

/** The last keys of a window, newest first, and which of them the window has dropped. */
async function newest(id: string): Promise<{ keys: Listed[]; total: number }> {
  const { total } = await api.keys(id, 0, 1);
  const { keys } = await api.keys(id, Math.max(0, total - page), page);
  const views = keys.length > 0 ? (await api.ask(id, { keys: keys.map((one) => one.key) })).keys : [];
  const told = keys.map((one, i) => ({ ...one, forgotten: views[i]!.truth === "forgotten" }));
  return { keys: told.reverse(), total: told.length };
}
