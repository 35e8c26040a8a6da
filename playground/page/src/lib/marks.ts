// The cells of the key in hand, and what each is in the picture: what the API said of them, in the picture's words.
import type { Key, KeyView } from "./api";

/** set by this key first; set before; not set, which proves absence; only looked at, and not set. */
export type Role = "new" | "shared" | "proof" | "looked";

export interface Marks {
  key: Key;
  answer: "maybe" | "no";
  cells: { cell: number; role: Role; layer: number }[];
  /** True while the key is only being typed. */
  faint: boolean;
}

/** The marks of a key that was `added`, asked, or (`faint`) is being typed. Each cell comes once. */
export function marksOf(view: KeyView, how: "added" | "asked" | "typed"): Marks {
  const cells: Marks["cells"] = [];
  const proven = new Set<number>();
  for (const { cell, layer, value, again, new: fresh } of view.cells) {
    if (again) continue;
    let role: Role;
    if (how === "added") role = fresh ? "new" : "shared";
    else if (value !== 0) role = "shared";
    else role = proven.has(layer) ? "looked" : "proof";
    if (role === "proof") proven.add(layer);
    cells.push({ cell, role, layer });
  }
  return { key: view.key, answer: view.answer, cells, faint: how === "typed" };
}
