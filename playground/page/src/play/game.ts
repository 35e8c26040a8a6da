// The parts of the Play view. They outlive the view, so that the reader finds the filter as it was, and actions that
// were started continue. Played is the state, Making creates filters, Actions changes them, and Around is what is shown
// beside the bits. All actions go through one queue, in order.
import { Actions } from "./actions.svelte";
import { Around } from "./around.svelte";
import { Making } from "./making.svelte";
import { Played } from "./played.svelte";
import { Queue } from "./queue.svelte";

export const played = new Played();
export const queue = new Queue(idle);
export const around = new Around(played, queue);
export const making = new Making(played, queue);
export const actions = new Actions(played, queue);

/** Updates what is shown around the bits, once after all queued actions. */
function idle(): void {
  if (!played.stale) return;
  played.stale = false;
  around.refresh();
  making.backToShown();
  void making.keepInUrl();
}
