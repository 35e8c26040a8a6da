/**
 * Scrolls the page just far enough to show an element; if there is no room for all of it, the part `rather` of it. On a
 * projector, the question above stays in view, too.
 */
export function reveal(whole: Element | null | undefined, rather: string): void {
  if (!whole) return;
  const tight = whole.clientHeight > innerHeight || document.documentElement.hasAttribute("data-projector");
  const part = tight ? (whole.querySelector(rather) ?? whole) : whole;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  part.scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
}
