// Progress of an insertion that takes many calls. It continues while another view is open.

export class Addition {
  done = $state(0);
  #stopped = false;

  /** `all` and `done` are keys or bytes; `words` formats them. */
  constructor(
    readonly all: number,
    private readonly words: (done: number) => string,
  ) {}

  get said(): string {
    return this.words(this.done);
  }

  /** Stops after the current call. */
  stop(): void {
    this.#stopped = true;
  }

  get stopped(): boolean {
    return this.#stopped;
  }
}
