// Draws a chart whose margins are as wide as its labels, and whose horizontal axis has no more ticks than fit.
import type * as PlotLibrary from "@observablehq/plot";

export interface Margins {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

type Plot = typeof PlotLibrary;
type Drawing = ReturnType<Plot["plot"]>;

const least: Margins = { left: 24, right: 16, top: 28, bottom: 40 };
/** Space between a label and the edge, and between the labels of two ticks. */
const edge = 2;
const between = 8;
const most_passes = 8;

/** What makes the labels fit; a start for the next drawing of the same chart. */
export interface Fit {
  margins: Margins;
  /** If 3, every third tick that the chart asks for is drawn. */
  every: number;
}

export const firstFit = (margins: Partial<Margins>): Fit => ({ margins: { ...least, ...margins }, every: 1 });

/** Draws into `place`, again with other margins and ticks until nothing is clipped and no labels of ticks meet. */
export function fitted(
  plot: Plot,
  place: HTMLElement,
  start: Fit,
  options: (margins: Margins) => PlotLibrary.PlotOptions,
): { drawing: Drawing; fit: Fit } {
  let { margins, every } = start;
  for (let pass = 1; ; ++pass) {
    const given = options(margins);
    const drawing = plot.plot({
      ...given,
      ...(every > 1 && given.x ? { x: { ...given.x, ticks: fewer(given, margins, every) } } : {}),
      marginLeft: margins.left,
      marginRight: margins.right,
      marginTop: margins.top,
      marginBottom: margins.bottom,
    });
    place.append(drawing);
    const wanted = marginsFor(drawing, margins);
    const crowd = crowdOf(drawing);
    if ((!wanted && crowd <= 1) || pass === most_passes) return { drawing, fit: { margins, every } };
    drawing.remove();
    margins = wanted ?? margins;
    if (!wanted) every *= Math.max(1.2, crowd);
  }
}

function fewer({ x, width = 640 }: PlotLibrary.PlotOptions, { left, right }: Margins, every: number) {
  const ticks = x?.ticks;
  if (Array.isArray(ticks)) return ticks.filter((_, i) => i % Math.ceil(every) === 0) as number[];
  return Math.max(2, (typeof ticks === "number" ? ticks : (width - left - right) / 80) / every);
}

const boxes = (texts: NodeListOf<Element>) =>
  [...texts].filter((one) => one.textContent !== "").map((one) => one.getBoundingClientRect());

/** The margins that the labels need; null: these do. */
function marginsFor(drawing: Drawing, now: Margins): Margins | null {
  const frame = drawing.getBoundingClientRect();
  const all = boxes(drawing.querySelectorAll("text"));
  const ticks = boxes(drawing.querySelectorAll("[aria-label='y-axis tick label'] text"));
  const over = (side: (box: DOMRect) => number) => Math.ceil(Math.max(0, ...all.map(side)));
  // Labels of ticks end at the axis, so their margin can also shrink.
  const slack = Math.floor(Math.min(...ticks.map((box) => box.left - frame.left)) - edge);
  const left = over((box) => frame.left - box.left);
  const wanted = {
    left: left > 0 ? now.left + left + edge : now.left - (ticks.length > 0 && slack > 4 ? slack : 0),
    right: now.right + over((box) => box.right - frame.right),
    // Boxes are a little higher than their letters.
    top: now.top + over((box) => frame.top - box.top - 0.2 * box.height),
    bottom: now.bottom + over((box) => box.bottom - frame.bottom - 0.2 * box.height),
  };
  return (Object.keys(wanted) as (keyof Margins)[]).some((side) => wanted[side] !== now[side]) ? wanted : null;
}

/** How many times the labels of the horizontal axis are too close to each other; at most 1: they have room. */
function crowdOf(drawing: Drawing): number {
  const ticks = boxes(drawing.querySelectorAll("[aria-label='x-axis tick label'] text")).sort(
    (a, b) => a.left - b.left,
  );
  const crowds = ticks.slice(1).map((box, i) => {
    const before = ticks[i]!;
    const apart = (box.left + box.right - before.left - before.right) / 2;
    return ((box.width + before.width) / 2 + between) / Math.max(1, apart);
  });
  return Math.max(0, ...crowds);
}
