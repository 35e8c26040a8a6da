// The cells of the current key and their roles in the picture, from the API's answer.
import type { Key, KeyView } from "./api";

/**
 * Newly set by this key; already set; not set, so the key is absent; not set, and already proven absent; not set,
 * although the key was added, because a removal by force cleared it.
 */
export type Role = "new" | "shared" | "proof" | "looked" | "lost";

export interface Marks {
  key: Key;
  answer: "maybe" | "no";
  cells: { cell: number; role: Role; layer: number }[];
  /** True while the key is only being typed. */
  faint: boolean;
}

/** The marks of a key that was added, looked up, or is being typed (`faint`). Each cell occurs once. */
export function marksOf(view: KeyView, how: "added" | "asked" | "typed"): Marks {
  const cells: Marks["cells"] = [];
  const proven = new Set<number>();
  for (const { cell, layer, value, again, new: fresh } of view.cells) {
    if (again) continue;
    let role: Role;
    if (how === "added") role = fresh ? "new" : "shared";
    else if (value !== 0) role = "shared";
    else if (view.truth === "added") role = "lost";
    else role = proven.has(layer) ? "looked" : "proof";
    if (role === "proof") proven.add(layer);
    cells.push({ cell, role, layer });
  }
  return { key: view.key, answer: view.answer, cells, faint: how === "typed" };
}
