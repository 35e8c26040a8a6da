// Numbers for the charts of the last hour.
import type { Sample } from "../lib/api";
import { count } from "../lib/numbers";
import { currentLanguage } from "../lib/words.svelte";
import { rough } from "../measure/numbers";

export type Reading = Sample & { keys: number; rate: number };

export const isReading = (s: Sample): s is Reading => s.keys !== null && s.rate !== null;

export interface Pace {
  from: number;
  to: number;
  per_second: number;
}

/** Net keys per second, in at most 60 intervals. None spans a gap or the replacement of the filter. */
export function pacesOf(samples: Sample[]): Pace[] {
  const width = Math.max(5000, (samples.at(-1)!.at - samples[0]!.at) / 60);
  const paces: Pace[] = [];
  let start: Reading | undefined;
  for (const s of samples) {
    if (!isReading(s)) start = undefined;
    else if (!start || s.keys < start.keys / 2) start = s;
    else if (s.at - start.at >= width - 1000) {
      paces.push({ from: start.at, to: s.at, per_second: (1000 * (s.keys - start.keys)) / (s.at - start.at) });
      start = s;
    }
  }
  return paces;
}

/** About `most` of the samples, always with the latest, for a table that can be read. */
export function thinned<T>(samples: T[], most: number): T[] {
  const step = Math.ceil(samples.length / most);
  return samples.filter((_, i) => (samples.length - 1 - i) % step === 0);
}

/** 5400 as "1.5 hours", with two digits. */
export function duration(seconds: number): string {
  const units = [
    ["second", 1, 90],
    ["minute", 60, 5400],
    ["hour", 3600, 129_600],
    ["day", 86_400, 63_072_000],
    ["year", 31_536_000, Infinity],
  ] as const;
  const [unit, length] = units.find(([, , below]) => seconds < below)!;
  const style = { style: "unit", unit, unitDisplay: "long", maximumSignificantDigits: 2 } as const;
  return new Intl.NumberFormat(currentLanguage(), style).format(seconds / length);
}

/** 0.0421 as "0.042", 1234.5 as "1,235". */
export const paceText = (perSecond: number) => (Math.abs(perSecond) < 100 ? rough(perSecond) : count(perSecond));

/** "14:05", with seconds in a short history. */
export function clockOf(at: number, withSeconds: boolean): string {
  return new Date(at).toLocaleTimeString(currentLanguage() === "zh" ? "zh-CN" : "en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(withSeconds ? { second: "2-digit" } : {}),
  });
}
