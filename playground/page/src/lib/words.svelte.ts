// Texts in the reader's language. All texts are in texts/*.json; {names} in them are replaced here.
import en from "../texts/en.json";
import zh from "../texts/zh.json";

export type Language = "en" | "zh";
export type Word = keyof typeof en;

const texts: Record<Language, Record<Word, string>> = { en, zh };

function first(): Language {
  const kept = localStorage.getItem("language");
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.startsWith("zh") ? "zh" : "en";
}

let language = $state<Language>(first());
document.documentElement.lang = first() === "zh" ? "zh-Hans" : "en";

export function currentLanguage(): Language {
  return language;
}

export function speak(other: Language): void {
  language = other;
  localStorage.setItem("language", other);
  document.documentElement.lang = other === "zh" ? "zh-Hans" : "en";
}

/** The text of a name: t("play.added", { key: "Madrid" }). */
export function t(name: Word, values: Record<string, string | number> = {}): string {
  return texts[language][name].replace(/\{(\w+)\}/g, (all, key: string) => (key in values ? String(values[key]) : all));
}
