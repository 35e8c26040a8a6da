// The filter of one chapter, created when the chapter opens and deleted when the reader leaves it.
//
//   const live = new Live({ scheme: "pharo", capacity: 10, rate: 0.1 }, ["Madrid"]);
//   onMount(live.open);
import { api, ApiError, reason, type State, type Wanted } from "../lib/api";
import { isAway, patiently } from "../lib/patience";

export class Live {
  state = $state.raw<State>();
  /** Incremented with each change of the filter, whose cells may differ afterwards. */
  version = $state(0);
  problem = $state("");
  /** away: the server does not answer; gone: it answers, but no longer has the filter. */
  away = $state(false);
  gone = $state(false);
  busy = $state(false);
  #left = false;
  #turn = Promise.resolve();

  constructor(
    private readonly wanted: Wanted,
    private readonly before: string[] = [],
  ) {}

  /** For onMount; the returned function deletes the filter. */
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
      // The filter may be gone already.
      void this.#turn.then(() => this.state && api.drop(this.state.id).catch(() => undefined));
    };
  };

  /** Runs an action on the filter after the previous ones; errors go to `problem`. */
  do = (work: (id: string) => Promise<State | undefined>): Promise<void> =>
    this.#then(async () => (this.state && !this.#left ? work(this.state.id) : undefined));

  /** Runs a request that does not change the filter. */
  ask = (work: (id: string) => Promise<void>): Promise<void> =>
    this.do(async (id) => {
      await work(id);
      return undefined;
    });

  /** Loads what the chapter shows beside the filter from the start. */
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
      // The operation may or may not have completed. Check for the filter when the server answers again.
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

  // Buttons stay enabled during a request, so that they keep the keyboard focus.
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
