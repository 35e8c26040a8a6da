// The filter of one chapter, created when the chapter opens and deleted when the reader leaves it.
//
//   const live = new Live({ scheme: "pharo", capacity: 10, rate: 0.1 }, ["Madrid"]);
//   onMount(live.open);
import { api, reason, type State, type Wanted } from "../lib/api";

export class Live {
  state = $state.raw<State>();
  /** Incremented with each change of the filter, whose cells may differ afterwards. */
  version = $state(0);
  problem = $state("");
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
      this.#left ? Promise.resolve(undefined) : api.make(this.wanted, { steps: [{ keys: this.before }] }),
    );
    return () => {
      this.#left = true;
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
      await work();
    } catch (e) {
      this.#failed(e);
    }
  };

  #failed(e: unknown): void {
    if (!this.#left) this.problem = reason(e);
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
