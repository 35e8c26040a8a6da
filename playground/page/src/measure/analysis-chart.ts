// The chart of the analysis: the expected curve, the runs, their mean and its band, each with a label beside it.
import type * as PlotLibrary from "@observablehq/plot";
import type { Margins } from "../components/fitted";
import type { Measured, Params, Point } from "../lib/api";
import { widthOf } from "../lib/measured.svelte";
import { count, percent } from "../lib/numbers";
import { t } from "../lib/words.svelte";
import { powers } from "./numbers";

export interface Shown {
  made: Params;
  theory: Point[];
  /** Empty until the first run is done. */
  points: Measured[];
  runs: number;
  queries: number;
  /** The same bits with good hashes, for comparison. */
  sound: Point[] | null;
  log: boolean;
  width: number;
  margins: Margins;
}

/** Of more crosses, only some are drawn. */
export const mostCrosses = 3000;

interface Name {
  text: string;
  fill: string;
}

export function analysisChart(plot: typeof PlotLibrary, shown: Shown): PlotLibrary.PlotOptions {
  const { made, theory, points, runs, queries, sound, log } = shown;
  const last = theory.at(-1)!;
  const n = made.capacity;
  const top =
    1.06 * Math.max(1.25 * made.rate, last.rate, ...points.map((at) => Math.max(at.mean + at.deviation, ...at.rates)));
  // Less than half of one false positive in all runs cannot be measured; below it, a log scale shows only noise.
  const smallest = log ? 10 ** Math.floor(Math.log10(0.3 / Math.max(queries * Math.max(runs, 1), 100 / made.rate))) : 0;
  const visible = (rate: number) => rate > 0 && rate >= smallest;
  const drawn = <T>(all: T[], rate: (one: T) => number) => (log ? all.filter((one) => visible(rate(one))) : all);

  const every = Math.ceil((points.length * runs) / mostCrosses);
  const crosses = points
    .filter((_, i) => i % Math.max(1, every) === 0)
    .flatMap((at) => at.rates.map((rate) => ({ keys: at.keys, rate })));

  return {
    x: {
      label: t("measure.axis.keys"),
      labelOffset: 40,
      domain: [0, last.keys],
      ticks: Math.min(8, last.keys),
      tickFormat: count,
    },
    y: {
      type: log ? "log" : "linear",
      label: t(log ? "measure.axis.rate.log" : "measure.axis.rate"),
      domain: [smallest, Math.min(top, 1)],
      ticks: log ? powers(smallest, top) : 5,
      tickFormat: percent,
      grid: true,
      clamp: log,
    },
    marks: [
      ...targets(plot, n, made.rate, last.keys),
      plot.areaY(points, {
        x: "keys",
        y1: (at: Measured) => Math.max(at.mean - at.deviation, smallest),
        y2: (at: Measured) => Math.max(at.mean + at.deviation, smallest),
        fill: "var(--chart-2)",
        fillOpacity: 0.22,
      }),
      plot.dot(
        drawn(crosses, (one) => one.rate),
        {
          x: "keys",
          y: "rate",
          symbol: "times",
          r: 2.4,
          stroke: "var(--quiet)",
          strokeWidth: 1,
          strokeOpacity: 0.75,
        },
      ),
      plot.dot(
        drawn(points, (at) => at.mean),
        { x: "keys", y: "mean", r: 2.6, fill: "var(--chart-2)" },
      ),
      plot.lineY(
        drawn(theory, (at) => at.rate),
        { x: "keys", y: "rate", stroke: "var(--chart-1)", strokeWidth: 2 },
      ),
      ...(sound
        ? soundly(
            plot,
            drawn(sound, (at) => at.rate),
          )
        : []),
      ...names(plot, shown, smallest, top),
    ],
  };
}

// The capacity and the target FPR.
function targets(plot: typeof PlotLibrary, n: number, p: number, most: number): PlotLibrary.Markish[] {
  const rule = { stroke: "var(--quiet)", strokeDasharray: "4,3" };
  return [
    plot.ruleX([n], rule),
    plot.ruleY([p], rule),
    plot.text([n], {
      x: (keys: number) => keys,
      frameAnchor: "top",
      dy: -14,
      textAnchor: n > 0.9 * most ? "end" : "middle",
      text: () => t("measure.target.n", { n: count(n) }),
      fill: "var(--quiet)",
    }),
    plot.text([p], {
      x: () => most * 0.01,
      y: (rate: number) => rate,
      textAnchor: "start",
      dy: -9,
      text: () => t("measure.target.p", { p: percent(p) }),
      fill: "var(--quiet)",
      stroke: "var(--ground)",
      strokeWidth: 4,
    }),
  ];
}

function soundly(plot: typeof PlotLibrary, curve: Point[]): PlotLibrary.Markish[] {
  return [
    plot.lineY(curve, { x: "keys", y: "rate", stroke: "var(--text)", strokeWidth: 1.5, strokeDasharray: "2,4" }),
    plot.text(curve.slice(-1), {
      x: "keys",
      y: "rate",
      textAnchor: "end",
      dy: -10,
      text: () => t("measure.name.sound"),
      fill: "var(--text)",
      stroke: "var(--ground)",
      strokeWidth: 4,
    }),
  ];
}

// Labels are staggered beside the curve: on its left, or on its right on a log scale. Short lines lead from the labels
// to what they name.
function names(plot: typeof PlotLibrary, shown: Shown, smallest: number, top: number): PlotLibrary.Markish[] {
  const { theory, points, runs, log, width, margins } = shown;
  const last = theory.at(-1)!;
  // A curve on the axis has no room for labels.
  if (log ? last.rate < 30 * smallest : last.rate < 0.3 * top) return [];
  // Points that the log scale omits get no label.
  const means = points.map((at) => at.mean).filter((mean) => mean > smallest);
  const measured: Name[] =
    (log ? means : points).length === 0
      ? []
      : [
          ...(runs > 1 ? [{ text: t("measure.name.band"), fill: "var(--chart-2)" }] : []),
          { text: t(runs === 1 ? "measure.name.mean.one" : "measure.name.mean", { runs }), fill: "var(--chart-2)" },
          ...(runs > 1 ? [{ text: t("measure.name.run"), fill: "var(--quiet)" }] : []),
        ];
  const lowest = means.length > 0 ? Math.log(Math.min(...means) / smallest) / Math.log(top / smallest) : 0;
  // If the FPR is too small for the number of lookups, the measured points lie high up at the right edge.
  const room = lowest < 0.5;
  const first = Math.max(lowest, 0.2); // above the label of the expected curve
  const height = (i: number) => (i === 0 ? 0.18 : room ? first + (0.85 - first) * 0.25 * i : 1.03 - 0.06 * i);
  const all = [{ text: t("measure.name.theory"), fill: "var(--chart-1)" }, ...measured].map((name, i) => ({
    ...name,
    rate: log ? smallest * (top / smallest) ** height(i) : last.rate * (0.93 - 0.15 * i),
    right: log && (i === 0 || room),
  }));

  const pixel = last.keys / (width - margins.left - margins.right);
  return all.flatMap(({ text, fill, rate, right }) => {
    const keys = (theory.find((at) => at.rate >= rate) ?? last).keys;
    // Beside the crosses of the runs.
    const strewn = points.filter(({ rates }) => rates.some((r) => (right ? r > smallest && r <= rate : r >= rate)));
    const side = right ? 1 : -1;
    const edge = strewn.at(right ? -1 : 0)?.keys ?? keys;
    // Within the frame, even if it covers some of the crosses.
    const long = (widthOf(text) + 8) * pixel;
    const at = right
      ? Math.min(Math.max(keys, edge) + 24 * pixel, last.keys - long)
      : Math.max(Math.min(keys, edge) - 24 * pixel, Math.min(long, last.keys));
    return [
      plot.link([0], {
        x1: at,
        x2: keys + side * 8 * pixel,
        y1: rate,
        y2: rate,
        stroke: "var(--quiet)",
        strokeWidth: 1,
      }),
      plot.text([0], {
        x: at,
        dx: 4 * side,
        y: rate,
        text: () => text,
        fill,
        stroke: "var(--ground)",
        strokeWidth: 5,
        textAnchor: right ? "start" : "end",
      }),
    ];
  });
}
