// The Learn view as its reader sees it.
import { becomes, eventually, tableOf, tabTo, valuesOf, words } from "./browser.mjs";

/** The number of chapters. */
export const last = 13;

// n = 10 and p = 10% give 48 bits and 4 hashes, which pick these bits.
export const bits = { Madrid: [18, 9, 48, 39], Barcelona: [48, 42, 36, 30], Berlin: [27, 30, 33, 36], Roma: [36, 36, 36, 36] };

/** A reader of the page, who uses the keyboard or the mouse. */
export class Reader {
  constructor(page, language, byKeyboard) {
    Object.assign(this, { page, byKeyboard, t: words(language) });
    this.and = this.t("bits.and");
  }

  button = (name, values) => this.page.getByRole("button", { name: this.t(name, values), exact: true });
  said = () => this.page.locator("article [role=status]").first();

  async press(button) {
    await becomes(() => button.isEnabled(), true);
    if (!this.byKeyboard) return button.click();
    await tabTo(this.page, button);
    await this.page.keyboard.press("Enter");
  }

  async hears(name, values, at = this.said()) {
    await becomes(async () => (await at.innerText({ timeout: 1000 })).trim(), this.t(name, values));
  }

  /** The values in the text of this name, once it appears. */
  learns = (name, at = this.said(), seconds = 15) =>
    eventually(async () => valuesOf(this.t(name), (await at.innerText()).trim()), seconds);

  async isAt(chapter) {
    await becomes(() => new URL(this.page.url()).hash, `#learn/${chapter}`);
    await becomes(this.page.locator("h1"), this.t(`learn.${chapter}.ask`));
  }

  mayGoOn = (may) => becomes(() => this.button("learn.next").isEnabled(), may);
  chart = (n = 0) => tableOf(this.page.locator("figure").nth(n));
}
