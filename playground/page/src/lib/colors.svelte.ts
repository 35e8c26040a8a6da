// The page's colors for canvas drawings, which style.css does not reach.

let theme = $state(0);
new MutationObserver(() => ++theme).observe(document.documentElement, {
  attributeFilter: ["data-theme", "data-projector"],
});

/** The current colors. Effects that use them run again when they change. */
export function colors() {
  void theme;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ground: of("--ground"),
    unset: of("--unset"),
    accent: of("--accent"),
    onAccent: of("--on-accent"),
    maybe: of("--maybe"),
    fresh: of("--fresh"),
    text: of("--text"),
    quiet: of("--quiet"),
    bad: of("--bad"),
  };
}

export type Colors = ReturnType<typeof colors>;
