// A worker with an API of its own, which gets one request at a time.

export type Task = { method: string; path: string; body?: string | ArrayBuffer } | { inspect: File } | { run: string };

export interface Answer {
  status: number;
  type: string;
  body: ArrayBuffer;
}

interface Waiting {
  task: Task;
  signal: AbortSignal | undefined;
  done: (answer: Answer) => void;
  failed: (e: unknown) => void;
}

export class Machine {
  #worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  #waiting: Waiting[] = [];
  #current: Waiting | undefined;

  /**
   * `progress` receives the states of a job that runs. `ended` is called if the worker fails, for example because there
   * is no more memory: its filters are lost.
   */
  constructor(
    progress: (text: string) => void = () => {},
    private readonly ended: () => void = () => {},
  ) {
    this.#worker.onmessage = ({ data }: MessageEvent<Answer | { progress: string }>) => {
      if ("progress" in data) return progress(data.progress);
      this.#current?.done(data);
      this.#next();
    };
    this.#worker.onerror = (e) => {
      e.preventDefault();
      this.end(new Error(e.message || "the worker failed"));
    };
  }

  ask(task: Task, signal?: AbortSignal): Promise<Answer> {
    return new Promise((done, failed) => {
      this.#waiting.push({ task, signal, done, failed });
      if (!this.#current) this.#next();
    });
  }

  /** Runs a job of this machine, which answers nothing else until the job has ended. */
  run(job: string): void {
    this.#worker.postMessage({ run: job } satisfies Task);
  }

  end(reason: unknown = new Error("the worker was stopped")): void {
    this.#worker.terminate();
    for (const one of this.#current ? [this.#current, ...this.#waiting] : this.#waiting) one.failed(reason);
    this.#waiting = [];
    this.#current = undefined;
    this.ended();
  }

  /** Does not send requests that were aborted. */
  #next(): void {
    while ((this.#current = this.#waiting.shift())?.signal?.aborted) {
      this.#current!.failed(new DOMException("aborted", "AbortError"));
    }
    if (!this.#current) return;
    const { task } = this.#current;
    const body = "body" in task && task.body instanceof ArrayBuffer ? [task.body] : [];
    this.#worker.postMessage(task, body);
  }
}
