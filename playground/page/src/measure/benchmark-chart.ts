// Bars of lookups per second, grouped by the number of keys; a line across the end of each bar shows the quartiles.
import type * as PlotLibrary from "@observablehq/plot";
import type { Margins } from "../components/fitted";
import type { Bar, Benchmark } from "../lib/api";
import { t, type Word } from "../lib/words.svelte";
import { keysOf, powers, short } from "./numbers";

type Sizes = Benchmark["sizes"];
const group = 152;

export function heightOf(sizes: Sizes): number {
  return sizes.length * group + 50;
}

/** Whether the shortest bar would be invisible on a linear scale. */
export function isLog(sizes: Sizes): boolean {
  const rates = sizes.flatMap((size) => size.bars.map((b) => b.lookups_per_second));
  return Math.max(...rates) > 30 * Math.min(...rates);
}

export function benchmarkChart(plot: typeof PlotLibrary, sizes: Sizes, margins: Margins): PlotLibrary.PlotOptions {
  const log = isLog(sizes);
  const bars = sizes.flatMap((size) =>
    size.bars.map((b) => ({ ...b, keys: size.keys, name: t(`measure.structure.${b.structure}` as Word) })),
  );
  type Drawn = (typeof bars)[number];
  // A log scale has no 0: bars start at the power of ten below the smallest value.
  const start = log ? 10 ** Math.floor(Math.log10(Math.min(...bars.map((b) => b.low)))) : 0;
  const end = Math.max(...bars.map((b) => b.high));
  const names = (["filter", "hash_set", "sorted", "list"] satisfies Bar["structure"][]).map((s) =>
    t(`measure.structure.${s}` as Word),
  );
  return {
    x: {
      type: log ? "log" : "linear",
      domain: [start, end],
      label: t(log ? "measure.axis.rates.log" : "measure.axis.rates"),
      labelAnchor: "center",
      labelArrow: "none",
      labelOffset: 40,
      ticks: log ? powers(start, end) : 6,
      tickFormat: short,
      grid: true,
    },
    y: { domain: names, label: null, tickSize: 0, padding: 0.3, insetTop: 26 },
    fy: { domain: sizes.map((size) => size.keys), axis: null, padding: 0.04 },
    marks: [
      plot.text(
        sizes.map((size) => size.keys),
        {
          fy: (keys: number) => keys,
          frameAnchor: "top-left",
          dx: 2 - margins.left,
          dy: 6,
          text: (keys: number) => keysOf(keys),
          fontWeight: "bold",
          fill: "var(--text)",
        },
      ),
      plot.rect(bars, {
        fy: "keys",
        y: "name",
        x1: start,
        x2: "lookups_per_second",
        fill: (b: Drawn) => (b.structure === "filter" ? "var(--chart-1)" : "var(--quiet)"),
        fillOpacity: (b: Drawn) => (b.structure === "filter" ? 1 : 0.75),
      }),
      // An outline makes the line visible on and beside the bar, in both themes.
      ...[
        { stroke: "var(--ground)", strokeWidth: 6, insetTop: 2, insetBottom: 2 },
        { stroke: "var(--text)", strokeWidth: 2, insetTop: 4, insetBottom: 4 },
      ].flatMap(({ stroke, strokeWidth, ...inset }) => [
        plot.ruleY(bars, { fy: "keys", y: "name", x1: "low", x2: "high", stroke, strokeWidth }),
        ...(["low", "high"] as const).map((side) =>
          plot.tickX(bars, { fy: "keys", y: "name", x: side, stroke, strokeWidth, ...inset }),
        ),
      ]),
      plot.text(bars, {
        fy: "keys",
        y: "name",
        x: "high",
        dx: 7,
        textAnchor: "start",
        text: (b: Drawn) => short(b.lookups_per_second),
        fill: "var(--text)",
      }),
    ],
  };
}
