// The key in the field: while it is typed it already shows where it would fall.
import { api, type KeyView } from "../lib/api";
import { t } from "../lib/words.svelte";

/** A longer key is not looked up while it is typed. */
const longest = 10_000;

export class TypedKey {
  value = $state("");
  /** What the filter would say of it; null: it was not asked, or is no longer what it was. */
  view = $state.raw<KeyView | null>(null);
  /** The key was asked for: its answer stands, and no preview takes its place. */
  #answered = "";

  readonly hint = $derived.by(() => {
    if (!this.view) return "";
    const unset = this.view.cells.filter((c) => c.value === 0 && !c.again).length;
    return this.view.answer === "no" ? t("play.preview.no", { new: unset }) : t("play.preview.maybe");
  });

  /** The filter is another now. */
  forget(): void {
    this.view = null;
    this.#answered = "";
  }

  /** It is being asked for. */
  asked(key: string): void {
    this.#answered = key;
  }

  /** For an effect: looks up what is typed, in a moment; what is returned calls it off. */
  preview(id: string | undefined, failed: (e: unknown) => void): (() => void) | undefined {
    const key = this.value;
    if (key !== this.#answered) this.#answered = "";
    if (key === "" || !id || key.length > longest) {
      this.view = null;
      return undefined;
    }
    const stop = new AbortController();
    const later = setTimeout(async () => {
      if (key === this.#answered) return;
      try {
        const said = await api.ask(id, { keys: [key] }, stop.signal);
        if (!stop.signal.aborted && key !== this.#answered) this.view = said.keys[0]!;
      } catch (e) {
        if (stop.signal.aborted) return;
        this.view = null;
        failed(e);
      }
    }, 100);
    return () => {
      clearTimeout(later);
      stop.abort();
    };
  }
}
