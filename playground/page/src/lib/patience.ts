// Retries requests while the server does not answer.
import { api, ApiError } from "./api";

/** The server does not answer at all. */
export function isAway(e: unknown): boolean {
  return e instanceof ApiError && e.status === 0;
}

/** Polls the server until it answers. */
async function back(left: () => boolean): Promise<void> {
  while (!left()) {
    await new Promise((done) => setTimeout(done, 1500));
    try {
      await api.about();
      return;
    } catch (e) {
      if (!isAway(e)) return;
    }
  }
}

/** Runs `work`, and repeats it after an outage, which it reports to `away`. Once `left` is true, it no longer waits. */
export async function patiently<T>(
  work: () => Promise<T>,
  away: (is: boolean) => void,
  left: () => boolean = () => false,
): Promise<T> {
  for (;;) {
    try {
      const said = await work();
      away(false);
      return said;
    } catch (e) {
      if (isAway(e) && !left()) {
        away(true);
        await back(left);
        if (!left()) continue;
      }
      away(false);
      throw e;
    }
  }
}

let torn = false;

/** Loads a part of the page by import(). If the server does not answer, it throws an ApiError, too. */
export async function part<T>(load: () => Promise<T>): Promise<T> {
  const again = torn;
  try {
    // import() does not request a failed style sheet again.
    if (again) await Promise.all([...document.querySelectorAll<HTMLLinkElement>(sheets)].map(comesNow));
    torn = false;
    return await load();
  } catch (e) {
    torn = true;
    await api.about();
    if (again) throw e;
    return part(load);
  }
}

const sheets = "link[rel=stylesheet]";

function comesNow(link: HTMLLinkElement): Promise<void> | undefined {
  if (link.sheet) return undefined;
  const other = link.cloneNode() as HTMLLinkElement;
  return new Promise((done, failed) => {
    other.onload = () => done();
    other.onerror = () => failed(new Error(`no style sheet ${link.href}`));
    link.replaceWith(other);
  });
}
