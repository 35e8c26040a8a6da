// Texts in the reader's language. All texts are in texts/*.json; {names} in them are replaced here. Only the table of
// the current language is loaded.
import type en from "../texts/en.json";

export type Language = "en" | "zh";
export type Word = keyof typeof en;
type Table = Record<Word, string>;

const tables: Record<Language, () => Promise<{ default: Table }>> = {
  en: () => import("../texts/en.json"),
  zh: () => import("../texts/zh.json"),
};
/** Milliseconds until a table that could not be loaded is requested again. */
const pause = 1500;

function first(): Language {
  const kept = localStorage.getItem("language");
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.startsWith("zh") ? "zh" : "en";
}

let language = $state<Language>(first());
let table = $state.raw<Table>();
/** The language that was chosen last; its table may still be on its way. */
let wanted: Language = first();
document.documentElement.lang = tagOf(wanted);

export function currentLanguage(): Language {
  return language;
}

/** The language as HTML names it. */
export function tagOf(one: Language): string {
  return one === "zh" ? "zh-Hans" : "en";
}

/** Loads the texts of the first language. No component may be shown before. */
export function begin(): Promise<void> {
  return show(wanted);
}

/** Switches to another language. The page keeps the current one until the texts are there. */
export function speak(other: Language): Promise<void> {
  wanted = other;
  localStorage.setItem("language", other);
  return show(other);
}

async function show(next: Language): Promise<void> {
  while (wanted === next) {
    try {
      const texts = (await tables[next]()).default;
      if (wanted !== next) return;
      table = texts;
      language = next;
      document.documentElement.lang = tagOf(next);
      return;
    } catch {
      await new Promise((done) => setTimeout(done, pause));
    }
  }
}

/** The text of a name: t("play.added", { key: "Madrid" }). */
export function t(name: Word, values: Record<string, string | number> = {}): string {
  return table![name].replace(/\{(\w+)\}/g, (all, key: string) => (key in values ? String(values[key]) : all));
}
