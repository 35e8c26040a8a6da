// The key in the input field, with a preview of its cells while it is typed.
import { api, type KeyView } from "../lib/api";
import { t } from "../lib/words.svelte";

/** Longer keys are not looked up while they are typed. */
const longest = 10_000;

export class TypedKey {
  value = $state("");
  /** The previewed answer; null: not requested, or outdated. */
  view = $state.raw<KeyView | null>(null);
  /** The key was looked up: its answer is shown instead of a preview. */
  #answered = "";

  readonly hint = $derived.by(() => {
    if (!this.view) return "";
    const unset = this.view.cells.filter((c) => c.value === 0 && !c.again).length;
    return this.view.answer === "no" ? t("play.preview.no", { new: unset }) : t("play.preview.maybe");
  });

  /** The filter has changed. */
  forget(): void {
    this.view = null;
    this.#answered = "";
  }

  /** A lookup of the key has started. */
  asked(key: string): void {
    this.#answered = key;
  }

  /** For an effect: looks up the typed key after a short delay. Returns a function that cancels it. */
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
