// What is known of one inspected filter, and is always the newest: the API is asked again as soon as it has answered.
import { api, ApiError, type About, type Inspection } from "../lib/api";

/** A running program tells itself from the one that was started at this address before it. */
export type OfProgram<T> = T & { session?: string };

export type Named = About["inspections"][number];

/** Whether an answer speaks of this filter of this program, and not of another that has its number by now. */
export function speaksOf(answer: OfProgram<Partial<Named>>, named: Named, session: string | undefined): boolean {
  return (
    (answer.session === undefined || session === undefined || answer.session === session) &&
    (answer.name === undefined || answer.name === named.name) &&
    (answer.kind === undefined || answer.kind === named.kind)
  );
}

export class Watch {
  known = $state.raw<Inspection>();
  /** Why nothing new comes. */
  lost = $state.raw<ApiError | null>(null);
  #left = new AbortController();

  /** `other` is told when another program answers, or none that knows this filter. */
  constructor(
    private readonly named: Named,
    private readonly session: string | undefined,
    private readonly other: () => Promise<void>,
  ) {}

  /** For onMount: what it returns ends it. */
  open = (): (() => void) => {
    void this.#follow();
    return () => this.#left.abort();
  };

  async #follow(): Promise<void> {
    const { signal } = this.#left;
    let version = 0;
    while (!signal.aborted) {
      try {
        const said: OfProgram<Inspection> = await api.inspect(this.named.number, version, signal);
        if (!speaksOf(said, this.named, this.session)) {
          version = 0;
          await this.other();
          await pause();
          continue;
        }
        this.lost = null;
        // One that was started again counts anew.
        if (said.version === version) continue;
        version = said.version;
        this.known = said;
      } catch (e) {
        if (signal.aborted) return;
        if (!(e instanceof ApiError)) throw e;
        version = 0;
        // Of 404: the program answers, but has no such filter.
        this.lost = e.status === 404 ? null : e;
        if (e.status === 404) await this.other();
        await pause();
      }
    }
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1000));
}
