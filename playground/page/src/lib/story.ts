// The log of what happened, as text names and values, so that it follows the page's language.
import type { Cell, Key, KeyView } from "./api";
import { brief, count } from "./numbers";
import { t, type Word } from "./words.svelte";

/** Names, and whether the list is truncated. */
interface List {
  list: string[];
  more: boolean;
}

export type Part = [word: Word, values?: Record<string, string | number | List>];

export interface Line {
  id: number;
  /** Inserted or otherwise done, absent, maybe present, or wrong. */
  kind: "done" | "no" | "maybe" | "wrong";
  parts: Part[];
  /** Keys that the reader may want to look up next. */
  ask?: Key[];
}

let lines = 0;

export function line(kind: Line["kind"], ...parts: Part[]): Line {
  return { id: ++lines, kind, parts };
}

export function listOf(list: string[], more = false): List {
  return { list, more };
}

export function spoken(parts: Part[]): string {
  const told = (value: string | number | List) =>
    typeof value === "object" ? value.list.join(t("bits.and")) + (value.more ? t("story.more") : "") : value;
  return parts
    .map(([word, values = {}]) =>
      t(word, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, told(value)]))),
    )
    .join(t("story.between"));
}

function once(cells: Cell[]): Cell[] {
  return cells.filter((c) => !c.again);
}

/** Cell numbers as the original scheme counts them; long lists are truncated. */
function numbers(cells: Cell[], first: number): List {
  return listOf(
    cells.slice(0, 8).map((c) => count(c.cell + first)),
    cells.length > 8,
  );
}

export function toldAdded(view: KeyView, first: number): Line {
  const key = brief(view.key);
  const all = once(view.cells);
  const fresh = all.filter((c) => c.new);
  const parts: Part[] = [];
  if (fresh.length === 0) parts.push(["story.added.none", { key }]);
  else parts.push([fresh.length === 1 ? "story.added.one" : "story.added", { key, bits: numbers(fresh, first) }]);
  const shared = all.filter((c) => !c.new && fresh.length > 0);
  for (const c of shared.slice(0, 3)) {
    const others = c.owners.filter((o) => brief(o) !== key).map(brief);
    if (others.length > 0) {
      parts.push(["story.shared", { bit: count(c.cell + first), keys: listOf(others.slice(0, 2)) }]);
    }
  }
  return line("done", ...parts);
}

export function toldAsked(view: KeyView, first: number): Line {
  const key = brief(view.key);
  const all = once(view.cells);
  if (view.answer === "no") {
    const unset = all.find((c) => c.value === 0);
    const bit = unset ? count(unset.cell + first) : "";
    return view.truth === "added"
      ? line("wrong", ["story.lost", { key, bit }])
      : line("no", ["story.no", { key, bit }]);
  }
  if (!view.false_positive)
    return line("maybe", [view.truth === "added" ? "story.maybe.right" : "story.maybe", { key }]);
  const blamed = all.filter((c) => c.owners.length > 0).slice(0, 8);
  return line(
    "wrong",
    [view.truth === "removed" || view.truth === "forgotten" ? `story.wrong.${view.truth}` : "story.wrong", { key }],
    ...blamed.map((c): Part => [
      "story.by",
      { bit: count(c.cell + first), keys: listOf(c.owners.slice(0, 2).map(brief)) },
    ]),
  );
}
