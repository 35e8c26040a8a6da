// The current view and its state, all in the URL's fragment, so that links can be shared.
//
//   #learn/3    #play?capacity=10&rate=0.1&scheme=pharo&keys=Madrid,Barcelona    #inspect/0

export interface Route {
  view: string;
  part: string;
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.slice(1).split("?", 2);
  const [view = "", part = ""] = path.split("/", 2);
  return { view: view || "learn", part, query: new URLSearchParams(query) };
}

let route = $state.raw<Route>(read());
addEventListener("hashchange", () => {
  route = read();
});

export function current(): Route {
  return route;
}

/** Navigates to a view; `keep` replaces the current entry of the browser's history. */
export function go(view: string, part = "", query: Record<string, string> = {}, keep = false): void {
  const text = new URLSearchParams(query).toString();
  const hash = `#${view}${part === "" ? "" : `/${part}`}${text === "" ? "" : `?${text}`}`;
  if (keep) {
    history.replaceState(null, "", hash);
    route = read();
  } else {
    location.hash = hash;
  }
}
