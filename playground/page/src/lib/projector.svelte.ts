// Projector mode, for lectures: larger type, the highest contrast, and only what the chapter needs. A button, Alt+P and
// links switch it: #learn/4?projector or #learn/4?projector=off. The browser remembers it.
import { current } from "./route.svelte";

const linked = current().query.get("projector");
let on = $state((linked === null ? localStorage.getItem("projector") : linked) !== null && linked !== "off");
keep();

function keep(): void {
  document.documentElement.toggleAttribute("data-projector", on);
  if (on) localStorage.setItem("projector", "on");
  else localStorage.removeItem("projector");
}

export function projecting(): boolean {
  return on;
}

export function project(is: boolean): void {
  on = is;
  keep();
}

addEventListener("keydown", (e) => {
  // The key's place, because Alt writes other letters on some keyboards.
  if (!e.altKey || e.ctrlKey || e.metaKey || e.shiftKey || e.code !== "KeyP") return;
  e.preventDefault();
  project(!on);
});
addEventListener("hashchange", () => {
  const said = current().query.get("projector");
  if (said !== null) project(said !== "off");
});
