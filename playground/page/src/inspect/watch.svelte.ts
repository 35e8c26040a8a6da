// The latest state of one inspected filter. Each answer of the API is followed by the next request.
import { api, ApiError, type About, type History, type Inspection } from "../lib/api";

/** An answer with the session of the program that gave it; a restarted program has another session. */
export type OfProgram<T> = T & { session?: string };

export type Named = About["inspections"][number];

/** Whether an answer is about this filter of this program, not about another one with the same number. */
export function speaksOf(answer: OfProgram<Partial<Named>>, named: Named, session: string | undefined): boolean {
  return (
    (answer.session === undefined || session === undefined || answer.session === session) &&
    (answer.name === undefined || answer.name === named.name) &&
    (answer.kind === undefined || answer.kind === named.kind)
  );
}

/** Milliseconds between requests for new samples, as often as the program takes one. */
const between = 5000;

export class Watch {
  known = $state.raw<Inspection>();
  past = $state.raw<History | null>(null);
  /** The error that stops updates. */
  lost = $state.raw<ApiError | null>(null);
  #left = new AbortController();

  /** `other` is called if another program answers, or one that does not have this filter. */
  constructor(
    private readonly named: Named,
    private readonly session: string | undefined,
    private readonly other: () => Promise<void>,
  ) {}

  /** For onMount; the returned function ends it. */
  open = (): (() => void) => {
    void this.#follow();
    void this.#remember();
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
        // A restarted program counts versions from the start again.
        if (said.version === version) continue;
        version = said.version;
        this.known = said;
      } catch (e) {
        if (signal.aborted) return;
        if (!(e instanceof ApiError)) throw e;
        version = 0;
        // 404: the program answers, but has no such filter.
        this.lost = e.status === 404 ? null : e;
        if (e.status === 404) await this.other();
        await pause();
      }
    }
  }

  /** The program keeps the samples; only new ones are sent. */
  async #remember(): Promise<void> {
    const { signal } = this.#left;
    while (!signal.aborted) {
      // The latest sample is replaced until its 5 seconds are over.
      const before = this.past?.samples.slice(0, -1) ?? [];
      try {
        const said: OfProgram<Partial<Named> & Partial<History>> = await api.history(
          this.named.number,
          before.at(-1)?.at ?? 0,
          signal,
        );
        const { samples = [], keys_per_second = null, full_in = null } = said;
        const oldest = (samples.at(-1)?.at ?? 0) - 3_600_000;
        const known = speaksOf(said, this.named, this.session) && samples.length > 0;
        const all = [...before.filter((s) => s.at >= oldest), ...samples];
        this.past = known ? { samples: all, keys_per_second, full_in } : null;
      } catch (e) {
        if (signal.aborted) return;
        if (!(e instanceof ApiError)) throw e; // #follow() reports it
      }
      await pause(between);
    }
  }
}

function pause(milliseconds = 1000): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
