// The page's colours for what is drawn by hand: style.css does not reach into a canvas.

let theme = $state(0);
new MutationObserver(() => ++theme).observe(document.documentElement, { attributeFilter: ["data-theme"] });

/** The colours as they are now. An effect that draws with them runs again when they change. */
export function colours() {
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
  };
}

export type Colours = ReturnType<typeof colours>;
