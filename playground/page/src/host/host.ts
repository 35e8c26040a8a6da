// What a host of the page provides. vite.config.ts chooses one of them as $host: server.ts or browser.ts.

/** Sends a request to the API, as fetch() does. The path begins with /api/1/. */
export type Reach = (path: string, init: RequestInit) => Promise<Response>;

/** Reads a filter file of the reader. The answer, as of the API, has the number of its inspection. */
export type Inspect = (file: File) => Promise<Response>;
