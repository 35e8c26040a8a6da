// The filter of one chapter: made when the chapter opens, dropped when it is left.
//
//   const live = new Live({ scheme: "pharo", capacity: 10, rate: 0.1 }, ["Madrid"]);
//   onMount(live.open);
import { api, ApiError, reason, type State, type Wanted } from "../lib/api";
import { isAway, patiently } from "../lib/patience";

export class Live {
  state = $state.raw<State>();
  /** Counts what was done to the filter: with each its cells may be others. */
  version = $state(0);
  problem = $state("");
  /** The server does not answer; or it does, and no longer has the filter. */
  away = $state(false);
  gone = $state(false);
  busy = $state(false);
  #left = false;
  #turn = Promise.resolve();

  constructor(
    private readonly wanted: Wanted,
    private readonly before: string[] = [],
  ) {}

  /** For onMount: what it returns drops the filter. */
  open = (): (() => void) => {
    void this.#then(() =>
      this.#patiently(async () => {
        if (this.#left) return undefined;
        const made = await api.make(this.wanted);
        return this.before.length > 0 ? (await api.add(made.id, { keys: this.before })).state : made;
      }),
    );
    return () => {
      this.#left = true;
      // If it is gone already, all the better.
      void this.#turn.then(() => this.state && api.drop(this.state.id).catch(() => undefined));
    };
  };

  /** Does something with the filter, and tells in `problem` what goes wrong. What is asked for meanwhile waits its turn. */
  do = (work: (id: string) => Promise<State | undefined>): Promise<void> =>
    this.#then(async () => (this.state && !this.#left ? work(this.state.id) : undefined));

  /** Asks the filter something that leaves it as it is. */
  ask = (work: (id: string) => Promise<void>): Promise<void> =>
    this.do(async (id) => {
      await work(id);
      return undefined;
    });

  /** What the chapter shows from its beginning, beside the filter. */
  show = async (work: () => Promise<void>): Promise<void> => {
    try {
      await this.#patiently(work);
    } catch (e) {
      this.#failed(e);
    }
  };

  #patiently<T>(work: () => Promise<T>): Promise<T> {
    return patiently(
      work,
      (is) => (this.away = is),
      () => this.#left,
    );
  }

  #failed(e: unknown): void {
    if (this.#left) return;
    if (isAway(e)) {
      if (this.away) return;
      // What was asked for may be done or not; whether the filter is still there is known when the server is back.
      const id = this.state?.id;
      void this.show(async () => {
        const now = id ? await api.state(id) : undefined;
        if (now && now.id === this.state?.id) {
          this.state = now;
          ++this.version;
        }
      });
    } else if (e instanceof ApiError && e.status === 404 && e.problem.where === "id") this.gone = true;
    else this.problem = reason(e);
  }

  // No button need be disabled while one thing follows another: it would lose the focus of who presses it by keyboard.
  #then(work: () => Promise<State | undefined>): Promise<void> {
    this.busy = true;
    const mine = this.#turn.then(async () => {
      try {
        const after = await work();
        if (this.state) this.problem = "";
        if (after) {
          this.state = after;
          ++this.version;
        }
      } catch (e) {
        this.#failed(e);
      }
      if (mine === this.#turn) this.busy = false;
    });
    this.#turn = mine;
    return mine;
  }
}
