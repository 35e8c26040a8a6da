// The host of a page that `bloomery playground` serves: the program has the API, and inspects the files that were named
// when it was started.
import type { Inspect, Reach } from "./host";

export const reach: Reach = (path, init) => fetch(path, init);

export const inspect: Inspect | null = null;
