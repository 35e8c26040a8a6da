// The page's two APIs. `reader` has the reader's filters and always runs in a worker. `program` has jobs and
// inspections: those of `bloomery playground` if it serves the page, and otherwise those of workers, too.
import { inspectHere, programHere, readerHere } from "./browser";

/** Sends a request to an API, as fetch() does. The path begins with /api/1/. */
export type Reach = (path: string, init: RequestInit) => Promise<Response>;

/** Whether the page comes from `bloomery playground`: tools/build-page marks the copy in the program. */
export const served = document.documentElement.hasAttribute("data-served");

/** Where other people find the page; null: nowhere, because only this machine has it. */
export const address: string | null = served ? document.documentElement.dataset.served || null : location.href;

export const reader: Reach = readerHere;

export const program: Reach = served ? (path, init) => fetch(path, init) : programHere;

/**
 * Reads a filter file of the reader. The answer has the number of its inspection. Null: the program inspects the files
 * that were named when it was started.
 */
export const inspect: ((file: File) => Promise<Response>) | null = served ? null : inspectHere;
