// Helpers of the Play view's tests: locators and actions.
import assert from "node:assert/strict";
import { eventually } from "./browser.mjs";

// ---- locators ----

export const cities = "/#play?scheme=pharo&capacity=10&rate=0.1&keys=Madrid,Barcelona";

export const key = (page) => page.getByRole("textbox", { name: "Key", exact: true });
export const field = (page, name) => page.getByRole("textbox", { name, exact: true });
export const button = (page, name) => page.getByRole("button", { name, exact: typeof name === "string" });
export const bits = (page) => page.getByRole("slider", { name: /^Bits of the filter/ });
export const story = (page) => page.getByRole("region", { name: "What just happened" }).getByRole("listitem").first();
export const truth = (page) => page.getByRole("region", { name: "Exact list of keys" }).getByRole("listitem");
export const setBits = (page) => page.getByText(/^[\d,]+ of [\d,]+ (bits are set|counters are not 0)\./);

export const told = (page, text) => eventually(async () => assert.match(await story(page).innerText(), text));
export const names = async (page) => (await truth(page).locator("span").allInnerTexts()).map((one) => one.trim());
export const holds = (page, keys) => eventually(async () => assert.deepEqual(await names(page), keys));

/** Opens the view and waits until there is a filter. */
export async function open(page, where = "/#play") {
  await page.goto(where);
  await page.getByRole("link", { name: "Download" }).or(button(page, "Download")).waitFor();
}

export async function add(page, name) {
  await key(page).fill(name);
  await key(page).press("Enter");
  await eventually(async () => assert.ok((await story(page).innerText()).includes(`Added ${name}.`)));
}

/** "maybe" or "no", from the log. */
export async function ask(page, name) {
  await key(page).fill(name);
  await key(page).press("Shift+Enter");
  return eventually(async () => {
    const said = await story(page).innerText();
    assert.ok(said.includes(` ${name} `), said);
    const answer = /^\S\s*(Maybe|No)\b/.exec(said);
    assert.ok(answer, said);
    return answer[1].toLowerCase();
  });
}

export async function paste(page, text) {
  await key(page).focus();
  await key(page).evaluate((input, lines) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", lines);
    input.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}
