// The selected square of the picture, and the text about it: which keys set it.
import { api, ApiError, sentence, type Owners, type State } from "../lib/api";
import { brief, count } from "../lib/numbers";
import { t } from "../lib/words.svelte";
import type { Cells } from "./cells";
import type { Sight } from "./sight.svelte";

export class Cursor {
  /** The first cell of the square; -1 before the first selection. */
  cell = $state(-1);
  said = $state("");
  /** Whether the text is shown beside the square. */
  box = $state(false);
  #asking: AbortController | undefined;
  /** The square is still being loaded. */
  #unanswered = false;

  constructor(
    private readonly filter: () => State,
    private readonly sight: Sight,
    private readonly cells: Cells,
  ) {}

  /** Clears the selection and cancels its request, for another filter. */
  begin(): void {
    this.hide();
    this.cell = -1;
  }

  /** Hides the text, also that of a square which is still being loaded. */
  hide(): void {
    this.#asking?.abort();
    this.#unanswered = false;
    this.box = false;
  }

  /** Selects a square and shows the text about it. */
  async ask(cell: number): Promise<void> {
    this.cell = cell;
    this.#asking?.abort();
    const { grid } = this.sight;
    if (!grid || cell < 0) return;
    if (grid.unit > 1) {
      const said = this.#range(cell, grid.unit);
      this.#unanswered = said === null;
      if (said !== null) this.#say(said);
      return;
    }
    const { signal } = (this.#asking = new AbortController());
    try {
      const owners = await api.owners(this.filter().id, cell, signal);
      if (!signal.aborted) this.#say(this.#told(cell, owners));
    } catch (e) {
      if (!signal.aborted && e instanceof ApiError) this.#say(sentence(e.problem));
    }
  }

  /** Retries after other squares were loaded. */
  askAgain(): void {
    if (this.#unanswered && this.cell >= 0) void this.ask(this.cell);
  }

  #say(said: string): void {
    this.said = said;
    this.box = true;
  }

  /** The text about a square of several cells; null while it is being loaded. */
  #range(cell: number, unit: number): string | null {
    const s = this.sight.segmentOf(cell)!;
    const piece = this.cells.of(s.layer, unit);
    const set = piece?.data[(cell - s.first) / unit - piece.first];
    if (set === undefined) return null;
    const first = this.filter().filter.first_number;
    const to = Math.min(cell + unit, s.first + s.cells);
    const words = { from: count(cell + first), to: count(to - 1 + first), set: count(set), cells: count(to - cell) };
    return `${t("bits.range", words)} ${t("bits.open")}`;
  }

  #told(cell: number, o: Owners): string {
    const { filter, truth } = this.filter();
    const words = { bit: count(cell + filter.first_number), keys: o.owners.map(brief).join(t("bits.and")) };
    let said: string;
    if (o.value === 0) said = t("bits.unset", words);
    else if (o.owners.length === 0) said = t(truth ? "bits.too_many" : "bits.unknown", words);
    else if (o.owner_count > o.owners.length) {
      said = t("bits.owners.more", { ...words, more: count(o.owner_count - o.owners.length) });
    } else said = t("bits.owner", words);
    return filter.cell_bits === 4 && o.value > 0 ? `${said} ${t("bits.counter", { value: o.value })}` : said;
  }

  // ---- moving ----

  /** Zooms in (-1) or out (1) around a point. */
  zoom(by: -1 | 1, x?: number, y?: number): void {
    if (this.sight.zoom(by, x, y)) this.box = false;
  }

  /** Zooms around the selected square if it is visible, and updates its text. */
  zoomHere(by: -1 | 1): void {
    const { cell, sight } = this;
    const at = cell >= 0 ? sight.placeOf(cell) : null;
    if (!at || at.y < 0 || at.y > sight.height) return this.zoom(by);
    this.zoom(by, at.x + at.size / 2, at.y + at.size / 2);
    void this.ask(sight.squareOf(cell));
  }

  /** Zooms into a square of several cells. */
  open(cell: number): void {
    this.sight.open(cell);
    this.cell = cell;
    this.box = false;
  }

  /** Moves the selection by `cells`, and scrolls if necessary. */
  moveBy(cells: number): void {
    const last = this.filter().filter.cells - 1;
    // The first key press only shows the selection.
    const by = this.cell < 0 && Number.isFinite(cells) ? 0 : cells;
    const cell = this.sight.squareOf(Math.max(0, Math.min(last, Math.max(0, this.cell) + by)));
    this.sight.reveal(cell);
    void this.ask(cell);
  }
}
