// An addition that takes many calls: how far it is. It goes on while another view is looked at.

export class Addition {
  done = $state(0);
  #stopped = false;

  /** `all`, and what is `done` of it, are keys or bytes: `words` says which. */
  constructor(
    readonly all: number,
    private readonly words: (done: number) => string,
  ) {}

  get said(): string {
    return this.words(this.done);
  }

  /** It ends after the call that is under way. */
  stop(): void {
    this.#stopped = true;
  }

  get stopped(): boolean {
    return this.#stopped;
  }
}
