// The settings of a panel, kept in the link: #measure/benchmark?benchmark.sizes=10,1000
import { untrack } from "svelte";
import { current, go } from "../lib/route.svelte";

/** Settings when the view was left; a link without settings restores them. */
const left: Record<string, Record<string, string>> = {};

/** The panel's settings by name; defaults come from `usual`. Call it while a component initializes. */
export function settings<Name extends string>(panel: string, usual: Record<Name, string>): Record<Name, string> {
  const names = Object.keys(usual) as Name[];
  const told = (name: Name) => current().query.get(`${panel}.${name}`) ?? usual[name];
  const before = untrack(() => current().query.toString()) === "" ? left[panel] : undefined;
  const values = $state(
    Object.fromEntries(names.map((name) => [name, before?.[name] ?? told(name)])) as Record<Name, string>,
  );

  let first = true;
  $effect(() => {
    const { view } = current();
    untrack(() => {
      if (first) first = false;
      else if (view === "measure") for (const name of names) values[name] = told(name);
    });
  });
  $effect(() => {
    const now = names.map((name) => values[name]);
    left[panel] = { ...values };
    // Deferred: changing the route within an effect would restart this view.
    queueMicrotask(() => {
      if (current().view !== "measure") return;
      const query = new URLSearchParams(current().query);
      names.forEach((name, i) => {
        if (now[i] === usual[name]) query.delete(`${panel}.${name}`);
        else query.set(`${panel}.${name}`, now[i]!);
      });
      if (query.toString() !== current().query.toString())
        go("measure", current().part, Object.fromEntries(query), true);
    });
  });
  return values;
}

/** Makes the link lead to this panel. */
export function lead(panel: string): void {
  if (current().part !== panel) go("measure", panel, Object.fromEntries(current().query), true);
}
