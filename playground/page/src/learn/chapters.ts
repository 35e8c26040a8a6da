// The chapters in order, and the right answers of their questions. Their texts are in texts/*.json.
import type { Component } from "svelte";
import Cities from "./Cities.svelte";

export interface Chapter {
  chapter: number;
  /** Called when the reader has done the exercise. */
  finish: () => void;
}

type Load = () => Promise<{ default: Component<Chapter> }>;
const cities: Load = () => Promise.resolve({ default: Cities });

export const chapters: Load[] = [
  cities,
  cities,
  cities,
  cities,
  () => import("./Deleting.svelte"),
  () => import("./Sizing.svelte"),
  () => import("./Filling.svelte"),
  () => import("./Weak.svelte"),
  () => import("./Blocks.svelte"),
  () => import("./Growing.svelte"),
  () => import("./Windows.svelte"),
  () => import("./Noisy.svelte"),
  () => import("./World.svelte"),
];

export type Choice = "a" | "b" | "c";
export const right: Record<number, Choice> = { 3: "b", 5: "c", 6: "a", 9: "b", 12: "c" };
