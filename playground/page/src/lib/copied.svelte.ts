// Copies text to the clipboard and shows a message for a while.
//
//   const copied = new Copied();
//   <button onclick={() => copied.take(text)}>...</button> <span role="status">{copied.said}</span>
import { t } from "./words.svelte";

const shown_for = 5000;

export class Copied {
  said = $state("");
  #over: ReturnType<typeof setTimeout> | undefined;

  /** Copies `text`; then shows `done`, or `not` if the browser refuses. */
  async take(text: string, done = t("chart.copied"), not = t("chart.copied.not")): Promise<void> {
    clearTimeout(this.#over);
    try {
      await navigator.clipboard.writeText(text);
      this.said = done;
    } catch {
      this.said = not; // pages from another computer have no clipboard access
    }
    this.#over = setTimeout(() => (this.said = ""), shown_for);
  }
}
