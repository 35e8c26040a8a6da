// The Play view as its reader sees it: locators, actions and what they lead to.
import assert from "node:assert/strict";
import { becomes, download, eventually } from "./browser.mjs";

export const cities = "/#play?scheme=pharo&capacity=10&rate=0.1&keys=Madrid,Barcelona";

/** The text of numbered lines. */
export const numbered = (count, end = "\n") => Array.from({ length: count }, (_, i) => `line ${i}${end}`).join("");

/** A file for a form. */
export const fileOf = (name, content) => ({ name, mimeType: "text/plain", buffer: Buffer.from(content) });

export class PlayView {
  constructor(page) {
    this.page = page;
    this.key = page.getByRole("textbox", { name: "Key", exact: true });
    this.bits = page.getByRole("slider", { name: /^Bits of the filter/ });
    this.canvas = page.locator("canvas");
    this.story = page.getByRole("region", { name: "What just happened" }).getByRole("listitem");
    this.setBits = page.getByText(/^[\d,]+ of [\d,]+ (bits are set|counters are not 0)\./);
    this.statistics = page.getByRole("region", { name: "Statistics" });
    this.layout = page.getByRole("combobox", { name: "Layout" });
    this.addresses = page.getByRole("textbox", { name: "Number of addresses" });
  }

  field = (name) => this.page.getByRole("textbox", { name, exact: true });
  button = (name) => this.page.getByRole("button", { name, exact: typeof name === "string" });
  press = (name) => this.button(name).click();
  shows = (text) => this.page.getByText(text).waitFor();

  told = (text, seconds) => becomes(this.story.first(), text, seconds);
  names = async () => {
    const items = this.page.getByRole("region", { name: "Exact list of keys" }).getByRole("listitem");
    return (await items.locator("span").allInnerTexts()).map((one) => one.trim());
  };
  holds = (...keys) => becomes(this.names, keys);
  linkIs = (pattern) => becomes(() => this.page.url(), pattern);

  /** Opens the view and waits until there is a filter. */
  async open(where = "/#play") {
    await this.page.goto(where);
    await this.page.getByRole("link", { name: "Download" }).or(this.button("Download")).waitFor();
  }

  async add(name) {
    await this.key.fill(name);
    await this.key.press("Enter");
    await eventually(async () => assert((await this.story.first().innerText()).includes(`Added ${name}.`)));
  }

  /** "maybe" or "no", from the log. */
  async ask(name) {
    await this.key.fill(name);
    await this.key.press("Shift+Enter");
    return eventually(async () => {
      const said = await this.story.first().innerText();
      assert(said.includes(` ${name} `), said);
      const answer = /^\S\s*(Maybe|No)\b/.exec(said);
      assert(answer, said);
      return answer[1].toLowerCase();
    });
  }

  async paste(text) {
    await this.key.focus();
    await this.key.evaluate((input, lines) => {
      const options = { clipboardData: new DataTransfer(), bubbles: true, cancelable: true };
      const event = new ClipboardEvent("paste", options);
      event.clipboardData.setData("text/plain", lines); // in Firefox it is not the object of the options
      input.dispatchEvent(event);
    }, text);
  }

  async undo() {
    await this.press("Undo");
    await this.told(/was undone/);
  }

  download = (file) => download(this.page, () => this.press("Download"), file);
}
