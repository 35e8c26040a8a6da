// The state of an experiment: jobs of the program or of workers, run one by one and polled until the last is done.
//
//   const e = new Experiment<Analysis>("analysis");      in a module, so that results outlive the view
//   onMount(e.open);                                     cancels running jobs when the view is left
//   e.start([{ filter, runs: 10 }]);                     one result per request
import { api, ApiError, type Job, type Problem } from "../lib/api";

export type Stage = "idle" | "waiting" | "running" | "done" | "cancelled" | "failed";

const between = 250;
const longest = 5000;

export class Experiment<Result> {
  stage = $state<Stage>("idle");
  /** The latest result of each job. */
  results = $state.raw<Result[]>([]);
  /** Progress from 0 to 1 over all jobs; null: unknown. */
  share = $state<number | null>(null);
  problem = $state.raw<Problem | null>(null);
  /** The program does not answer; polling continues. */
  away = $state(false);
  /** The program answers again, but was restarted and has lost the job. */
  lost = $state(false);
  #began = $state("");
  readonly busy = $derived(this.stage === "waiting" || this.stage === "running");

  #turn = 0;
  #job = "";
  #wake: () => void = () => undefined;
  #asking = new AbortController();

  constructor(private readonly kind: string) {}

  open = (): (() => void) => {
    const leave = () => this.busy && this.cancel();
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      leave();
    };
  };

  /** Whether the last start used these requests. */
  beganWith(bodies: object[]): boolean {
    return this.#began === JSON.stringify(bodies);
  }

  async start(bodies: object[]): Promise<void> {
    this.#drop();
    this.#began = JSON.stringify(bodies);
    const turn = this.#turn;
    this.problem = null;
    this.away = this.lost = false;
    this.share = null;
    this.stage = "waiting";
    try {
      let results: Result[] = [];
      for (const [i, body] of bodies.entries()) {
        const job = await api.start<Result>(this.kind, body);
        if (turn !== this.#turn) return void api.cancel(job.id).catch(() => undefined);
        this.#job = job.id;
        const result = await this.#watch(job, turn, (now) => {
          this.stage = now.state === "waiting" && i === 0 ? "waiting" : "running";
          this.share = now.total > 0 ? (i + now.done / now.total) / bodies.length : i > 0 ? i / bodies.length : null;
          if (now.result) this.results = [...results, now.result];
        });
        if (turn !== this.#turn) return;
        this.#job = "";
        results = [...results, result!];
        this.results = results;
      }
      this.stage = "done";
    } catch (e) {
      if (turn !== this.#turn) return;
      this.#job = "";
      this.stage = "failed";
      if (!(e instanceof ApiError)) throw e;
      this.away = e.status === 0;
      this.lost = e.status === 404;
      this.problem = e.problem;
    }
  }

  cancel = (): void => {
    this.#drop();
    this.away = false;
    this.stage = "cancelled";
  };

  /** Polls at once instead of after the next pause. */
  retry = (): void => this.#wake();

  async #watch(job: Job<Result>, turn: number, see: (now: Job<Result>) => void): Promise<Result | undefined> {
    let now = job;
    let wait = between;
    while (turn === this.#turn) {
      see(now);
      if (now.state === "done") return now.result!;
      if (now.state === "cancelled") throw new ApiError(404, gone);
      if (now.state === "failed") throw new ApiError(500, now.error ?? gone);
      await new Promise<void>((go) => {
        this.#wake = go;
        setTimeout(go, wait);
      });
      if (turn !== this.#turn) return;
      try {
        now = await api.job<Result>(job.id, this.#asking.signal);
        this.away = false;
        wait = between;
      } catch (e) {
        if (turn !== this.#turn) return;
        // A proxy reports the outage with a status of its own.
        if (!(e instanceof ApiError) || (e.status !== 0 && e.status < 500)) throw e;
        this.away = true;
        wait = Math.min(2 * wait, longest);
      }
    }
    return;
  }

  #drop(): void {
    ++this.#turn;
    // Pending requests about the canceled job are aborted.
    this.#asking.abort();
    this.#asking = new AbortController();
    if (this.#job !== "") api.cancel(this.#job).catch(() => undefined);
    this.#job = "";
    this.#wake();
  }
}

// The program cancels jobs that are not polled for long, for example by a sleeping computer.
const gone: Problem = { code: "not_found", what: "it was canceled", where: "", expected: "", found: "", way_out: "" };
