// The filter that all experiments measure, kept in the link as Play does it: #measure?capacity=1000&rate=0.01
import { untrack } from "svelte";
import { api, type About, type Params, type Plan, type Wanted } from "../lib/api";
import { current, go } from "../lib/route.svelte";
import { parameters, wantedFrom } from "../lib/shared";

export const usual: Wanted = { capacity: 1000, rate: 0.01 };
const names = ["capacity", "rate", "bits", "probes", "layout", "scheme", "hash", "seed"] as const;

/** The filter when the view was left; a link without settings restores it. */
let left = usual;

const queryOf = (wanted: Wanted) => new URLSearchParams(parameters(wanted)).toString();

/** A link to the experiments with this filter, or to Play with it. */
export const linkTo = (view: "measure" | "play", wanted: Wanted) => `#${view}?${queryOf(wanted)}`;

/** Whether experiments support this kind of filter. */
export const isMeasurable = ({ family, keys }: Params) =>
  (family === "plain" || family === "counting") && keys === "bytes";

/** The request that makes a filter with these parameters; null: there is none. */
export async function wantedOf(p: Params, about: About): Promise<Wanted | null> {
  const { layout, scheme, hash, seed, capacity, rate, bits, probes } = p;
  const named = scheme !== null || (hash !== null && about.hashes.includes(hash));
  if (!isMeasurable(p) || !named || capacity === 0 || bits > about.limits.bits) return null;
  const kind = scheme ? { scheme } : { layout: layout!, hash: hash!, ...(seed === "0" ? {} : { seed }) };
  const bySize = { capacity, ...kind, bits, probes };
  for (const wanted of rate > 0 && rate < 1 ? [{ capacity, rate, ...kind }, bySize] : [bySize]) {
    const made = (await api.plan(wanted).catch(() => null))?.filter;
    if (made?.bits === bits && made.probes === probes) return wanted;
  }
  return null;
}

/** The filter of a link; null: it has none, or one that grows or has a window. */
function given(query: URLSearchParams): Wanted | null {
  const wanted = wantedFrom(query) ?? undefined;
  if (!wanted || wanted.grows || wanted.window_keys || wanted.window_milliseconds) return null;
  return wanted;
}

export class MeasuredFilter {
  /** Initial values of the controls; a change of `starts` resets the controls to them. */
  start = $state.raw(usual);
  starts = $state(1);
  /** Null: not planned yet, or the values of the controls make no filter. */
  planned = $state.raw<{ wanted: Wanted; plan: Plan } | null>(null);
  /** The controls have been heard: without a plan, their values make no filter. */
  heard = $state(false);
  #inUrl: string;

  constructor() {
    const { query } = untrack(current);
    const linked = given(query);
    this.start = linked ?? (query.toString() === "" ? left : usual);
    this.#inUrl = queryOf(linked ?? usual);
  }

  /** For an effect: a link that is followed while the view is open. */
  follow = (): void => {
    const { view, query } = current();
    if (view !== "measure") return;
    const linked = given(query) ?? usual;
    if (queryOf(linked) === this.#inUrl) return;
    this.#inUrl = queryOf(linked);
    untrack(() => this.choose(linked));
  };

  choose = (wanted: Wanted): void => {
    this.start = wanted;
    this.planned = null;
    this.heard = false;
    ++this.starts;
  };

  /** Receives plans of the controls. */
  onplan = (wanted: Wanted, plan: Plan | null): void => {
    this.heard = true;
    this.planned = plan && { wanted, plan };
    if (!plan) return;
    left = wanted;
    if (current().view !== "measure" || queryOf(wanted) === this.#inUrl) return;
    this.#inUrl = queryOf(wanted);
    const query = new URLSearchParams(current().query);
    for (const name of names) query.delete(name);
    const own = this.#inUrl === queryOf(usual) ? {} : parameters(wanted);
    go("measure", current().part, { ...own, ...Object.fromEntries(query) }, true);
  };

  /** The same kind of filter for another number of keys. */
  resized(keys: number): Wanted {
    const { wanted, plan } = this.planned!;
    const { capacity, layout, scheme, hash, rate } = plan.filter;
    if (keys === capacity) return wanted;
    return {
      capacity: keys,
      rate: wanted.rate ?? rate,
      ...(scheme ? { scheme } : { layout: layout!, hash: hash!, ...(wanted.seed ? { seed: wanted.seed } : {}) }),
    };
  }
}
