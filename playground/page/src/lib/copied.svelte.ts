// What the reader copies, and what is said of that for a while.
//
//   const copied = new Copied();
//   <button onclick={() => copied.take(text)}>...</button> <span role="status">{copied.said}</span>
import { t } from "./words.svelte";

const shown_for = 5000;

export class Copied {
  said = $state("");
  #over: ReturnType<typeof setTimeout> | undefined;

  /** To the clipboard; what is said then, and if the browser does not allow it. */
  async take(text: string, done = t("chart.copied"), not = t("chart.copied.not")): Promise<void> {
    clearTimeout(this.#over);
    try {
      await navigator.clipboard.writeText(text);
      this.said = done;
    } catch {
      this.said = not; // a page of another computer has no clipboard at all
    }
    this.#over = setTimeout(() => (this.said = ""), shown_for);
  }
}
