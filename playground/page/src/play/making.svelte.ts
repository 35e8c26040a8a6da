// Creates the filter: from a link, or from the controls. The address bar has a link to the present filter.
import { untrack } from "svelte";
import { api, type Keeps, type Plan, type State, type Step, type Wanted } from "../lib/api";
import { count } from "../lib/numbers";
import { current, go } from "../lib/route.svelte";
import { fromQuery, most_key_bytes, toQuery } from "../lib/shared";
import { line } from "../lib/story";
import { t } from "../lib/words.svelte";
import type { Played } from "./played.svelte";
import type { Queue } from "./queue.svelte";

const fresh: Wanted = { layout: "classic", capacity: 20, rate: 0.05 };

const same = (a: Wanted | null, b: Wanted | null) => JSON.stringify(a) === JSON.stringify(b);

/** wanted: null for the default filter. */
interface Pending {
  wanted: Wanted | null;
  steps: Step[];
}

export class Making {
  /** Initial values of the controls; a change of `starts` resets the controls to them. */
  start = $state.raw<Wanted>(fresh);
  starts = $state(0);
  /** The link makes no filter, so the previous one is still shown. */
  unopened = $state(false);
  /** A link to the present filter: a query, and whether it contains the keys. */
  link = $state.raw<{ query: Record<string, string>; whole: boolean }>({ query: {}, whole: false });
  #planned = $state.raw<{ wanted: Wanted; plan: Plan } | null>(null);
  /** To be created once there is a plan: the first filter, or that of a link. */
  #pending: Pending | null = null;
  /** Is being created. */
  #coming: { wanted: Wanted } | null = null;
  /** The address bar has this query. */
  #inUrl: string | undefined;

  constructor(
    private readonly played: Played,
    private readonly queue: Queue,
  ) {}

  /** The controls describe another filter than the current one. */
  readonly another = $derived.by(
    () => this.played.filter !== undefined && this.#planned !== null && !same(this.#planned.wanted, this.played.wanted),
  );

  /** The plan of the controls; null: their values make no filter. */
  get plan(): Plan | null {
    return this.#planned?.plan ?? null;
  }

  /** For onMount: the controls are those of the filter that the reader left, or of the one that is still to come. */
  open = (): void => {
    this.#inUrl = undefined;
    if (this.starts > 0) this.#begin((this.#pending ?? this.#coming ?? this.played).wanted);
  };

  /** For an effect: opens the link in the address bar, at first and when it changes. */
  follow = (): void => {
    const { view, query } = current();
    const text = query.toString();
    if (view !== "play" || text === this.#inUrl) return;
    this.#inUrl = text;
    untrack(() => void this.#openLink(text, query));
  };

  async #openLink(text: string, query: URLSearchParams): Promise<void> {
    const { played } = this;
    if (played.filter && text === new URLSearchParams(this.link.query).toString()) return; // a return to the view
    const given = await fromQuery(query).catch(() => undefined);
    if (text !== this.#inUrl) return; // another link was opened meanwhile
    if (given === undefined) this.queue.trouble = t("play.link.damaged");
    this.unopened = given === undefined && played.filter !== undefined;
    if (given) this.#makeFirst(given);
    else if (!played.filter && !this.#coming) this.#makeFirst(this.#pending ?? { wanted: null, steps: [] });
    else if (given === null) void this.keepInUrl();
  }

  #makeFirst(pending: Pending): void {
    this.#pending = pending;
    this.#begin(pending.wanted);
  }

  /** Resets the controls. */
  #begin(start: Wanted | null | undefined): void {
    this.start = start ?? fresh;
    this.#planned = null;
    ++this.starts;
  }

  /** Updates the link to the filter, and the address bar if it shows this view. */
  async keepInUrl(): Promise<void> {
    const { filter, wanted, version } = this.played;
    if (!filter) return;
    const before = location.hash;
    const isOurs = current().query.toString() === this.#inUrl;
    const steps = wanted && (await api.steps(filter.id, most_key_bytes).catch(() => null));
    const link = wanted ? await toQuery(wanted, steps) : { query: {}, whole: false };
    if (version !== this.played.version) return;
    this.link = link;
    // Not over a link that the reader has opened meanwhile.
    if (current().view !== "play" || !isOurs || location.hash !== before) return;
    this.#inUrl = new URLSearchParams(link.query).toString();
    go("play", "", link.query, true);
  }

  /** Once the reader continues with the previous filter, the link that could not be opened is forgotten. */
  backToShown(): void {
    if (!this.unopened) return;
    this.unopened = false;
    this.#pending = null;
    this.#begin(this.played.wanted);
  }

  /** Receives plans of the controls; null: their values make no filter. */
  onplan = (wanted: Wanted, plan: Plan | null): void => {
    const { played, queue } = this;
    this.#planned = plan && { wanted, plan };
    const pending = this.#pending;
    if (!plan) {
      if (pending) this.unopened = played.filter !== undefined;
      return;
    }
    if (pending) {
      const { start } = this;
      this.#pending = null;
      this.unopened = false;
      const keeps = () => ({ steps: pending.steps });
      void this.#create(wanted, keeps, () => {
        if (this.start !== start) return; // another link was opened meanwhile
        // Without the steps, whose error is shown, the reader can go on.
        this.#pending = played.filter ? pending : { wanted: pending.wanted, steps: [] };
        this.unopened = played.filter !== undefined;
      });
    } else if (
      played.filter?.truth &&
      played.filter.steps === 0 &&
      played.wanted &&
      queue.empty &&
      !same(wanted, played.wanted)
    ) {
      // An empty filter follows the controls; a filter with keys waits for the button.
      void this.#create(wanted);
    }
  };

  /** Creates the filter of the controls, with the present keys if they are known. */
  makeAnother(): Promise<void> {
    return this.#create(this.#planned!.wanted, ({ id, truth }) => (truth ? { keys_of: id } : undefined));
  }

  /** `keeps` receives the filter that is there when the new one is created. */
  #create(wanted: Wanted, keeps?: (before: State) => Keeps | undefined, failed?: () => void): Promise<void> {
    const coming = { wanted };
    this.#coming = coming;
    return this.queue
      .act(() => this.#make(wanted, keeps?.(this.played.filter!)), "actions", failed)
      .then(() => {
        if (this.#coming === coming) this.#coming = null;
      });
  }

  /** A failure leaves everything as it was. */
  async #make(wanted: Wanted, keeps?: Keeps): Promise<void> {
    const { played } = this;
    const old = played.filter?.id;
    const made = await api.make(wanted, keeps);
    // Changing the controls of an empty filter creates many filters; keep one line in the log.
    if (played.lines[0]?.parts[0]?.[0].startsWith("story.made")) played.lines = played.lines.slice(1);
    const { bits, probes } = made.filter;
    played.tell(line("done", [probes === 1 ? "story.made.one" : "story.made", { bits: count(bits), probes }]));
    const kept = made.facts.keys ?? 0;
    if (kept > 0) played.tell(line("done", [kept === 1 ? "story.kept.one" : "story.kept", { count: count(kept) }]));
    played.wanted = wanted;
    played.changed(made, null);
    if (old) await api.drop(old);
  }
}
