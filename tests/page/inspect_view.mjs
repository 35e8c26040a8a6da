// The Inspect view as its reader sees it.
import { eventually, numberOf, tableOf, words } from "./browser.mjs";

export const t = words("en");

/** The keys "key FROM" to "key TO - 1", one a line. */
export const keyLines = (from, to) => Array.from({ length: to - from }, (_, i) => `key ${from + i}\n`).join("");

/** A number as the large type shows it. */
export const rounded = (n) => Number(n.toPrecision(3));

export class InspectView {
  constructor(page) {
    this.page = page;
    this.map = page.getByRole("slider");
    this.alert = page.getByRole("alert");
    this.live = page.locator(".live");
  }

  open = (i) => this.page.goto(`/#inspect/${i}`);
  region = (name) => this.page.getByRole("region", { name: t(name), exact: true });
  shows = (name) => this.page.getByText(t(name)).waitFor();
  alerts = (name, values) => this.alert.getByText(t(name, values)).waitFor();
  named = (name) => this.page.getByRole("heading", { level: 1, name }).waitFor();
  table = (name) => tableOf(this.region(name).first());

  /** One of the three FPRs in large type: "promised", "certified" or "measured". */
  rate = (name) =>
    eventually(async () => numberOf(await this.page.locator(`[data-rate=${name}]`).innerText({ timeout: 1000 })));

  /** The value of a row in "Parameters". */
  fact = (name) =>
    this.region("inspect.parameters")
      .locator("dl > div", { has: this.page.getByText(t(name), { exact: true }) })
      .locator("dd");

  /** The sum of the blocks in the histogram. */
  blocks = async () => (await this.table("inspect.blocks")).slice(1).reduce((sum, [, n]) => sum + numberOf(n), 0);
}
