// A bar per number of keys, split into parts; lines lead from the parts to their labels below.
import type * as PlotLibrary from "@observablehq/plot";
import type { Margins } from "../components/fitted";
import type { Profile } from "../lib/api";
import { widthOf } from "../lib/measured.svelte";
import { bytes } from "../lib/numbers";
import { t, type Word } from "../lib/words.svelte";
import { keysOf, nanoseconds } from "./numbers";

const group = 108;
const colors = { hash: "var(--chart-1)", probe: "var(--chart-2)", memory: "var(--quiet)" };

export function heightOf(profiles: Profile[]): number {
  return profiles.length * group + 50;
}

export function totalOf(profile: Profile): number {
  return profile.parts.reduce((sum, part) => sum + part.nanoseconds, 0);
}

export function profileChart(
  plot: typeof PlotLibrary,
  profiles: Profile[],
  width: number,
  margins: Margins,
): PlotLibrary.PlotOptions {
  const end = Math.max(...profiles.map(totalOf));
  const pixel = end / (width - margins.left - margins.right);
  const parts = profiles.flatMap((profile, row) => {
    let from = 0;
    const here = profile.parts.map((part) => {
      const to = from + part.nanoseconds;
      const text = t(`measure.part.${part.part}` as Word, { ns: nanoseconds(part.nanoseconds) });
      const half = (widthOf(text) * pixel) / 2;
      const one = { row, part: part.part, from, to, middle: (from + to) / 2, at: (from + to) / 2, text, half };
      from = to;
      return one;
    });
    // Spread labels that would overlap: first from the left, then back from the right edge.
    let free = 0;
    for (const one of here) {
      one.at = Math.max(one.middle, free + one.half);
      free = one.at + one.half + 10 * pixel;
    }
    free = end;
    for (const one of here.reverse()) {
      one.at = Math.min(one.at, free - one.half);
      free = one.at - one.half - 10 * pixel;
    }
    return here;
  });
  type Drawn = (typeof parts)[number];
  const top = (row: number) => row * group + 24;
  return {
    x: {
      domain: [0, end],
      label: t("measure.axis.ns"),
      labelAnchor: "center",
      labelArrow: "none",
      labelOffset: 40,
      ticks: 8,
      tickFormat: (ns: number) => nanoseconds(ns),
      grid: true,
    },
    y: { axis: null, domain: [0, profiles.length * group], range: [8, 8 + profiles.length * group] },
    marks: [
      plot.text(profiles, {
        x: 0,
        y: (_: Profile, row: number) => top(row) - 11,
        textAnchor: "start",
        text: (p: Profile) =>
          t("measure.profile.bar", { keys: keysOf(p.keys), size: bytes(p.bytes), total: nanoseconds(totalOf(p)) }),
        fontWeight: "bold",
        fill: "var(--text)",
        stroke: "var(--ground)",
        strokeWidth: 4,
      }),
      plot.rect(parts, {
        x1: "from",
        x2: "to",
        y1: (p: Drawn) => top(p.row),
        y2: (p: Drawn) => top(p.row) + 28,
        fill: (p: Drawn) => colors[p.part],
        stroke: "var(--ground)",
        strokeWidth: 1,
      }),
      plot.link(parts, {
        x1: "middle",
        x2: "at",
        y1: (p: Drawn) => top(p.row) + 29,
        y2: (p: Drawn) => top(p.row) + 42,
        stroke: (p: Drawn) => colors[p.part],
        strokeWidth: 1.5,
      }),
      plot.text(parts, {
        x: "at",
        y: (p: Drawn) => top(p.row) + 52,
        text: "text",
        fill: (p: Drawn) => colors[p.part],
        stroke: "var(--ground)",
        strokeWidth: 4,
      }),
    ],
  };
}
