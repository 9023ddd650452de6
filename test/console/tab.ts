import type { Browser, Locator, Page } from "playwright-core";
import { openPage } from "../support/browser.ts";

/** A browser's tab with the console, used like a person does: by links and buttons, without an address. */
export interface Tab {
  page: Page;
  /** Errors of scripts, and content that the page's policy refused. */
  faults: readonly string[];
  /** Opens the console and signs in. `title` is the heading of the first screen. */
  signIn(origin: string, secret: string, title: string): Promise<void>;
  /** Goes to a screen by the navigation. */
  go(name: string): Promise<void>;
  /** Presses the first button of that name, of the open dialog where there is one. */
  press(name: string): Promise<void>;
  /** The dialog in front. */
  dialog(): Locator;
  /** Gives the secret when the console asks for it again, and waits until no dialog is open. */
  confirm(secret: string): Promise<void>;
  row(words: string): Locator;
  /** The text of the element with the focus. "" where none has it. */
  focused(): Promise<string>;
}

/** Opens a tab in a session of its own. */
export async function openTab(browser: Browser): Promise<Tab> {
  const { page, faults } = await openPage(browser);
  page.setDefaultTimeout(30_000);
  const dialog = () => page.locator("dialog[open]").last();
  const press = async (name: string) => {
    const place = (await dialog().isVisible()) ? dialog() : page;
    await place.getByRole("button", { name, exact: true }).first().click();
  };
  return {
    page,
    faults,
    async signIn(origin, secret, title) {
      await page.goto(`${origin}/console/`);
      await page.getByLabel(/^API key/).fill(secret);
      await press("Sign in");
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
    },
    async go(name) {
      const links = page.getByRole("navigation", { name: "Screens" });
      await links.getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
    },
    press,
    dialog,
    async confirm(secret) {
      await page.getByLabel(/^Your (API key|admin token)$/).fill(secret);
      await press("Confirm");
      await page.locator("dialog[open]").waitFor({ state: "detached" });
    },
    row: (words) => page.getByRole("row").filter({ hasText: words }),
    focused: () =>
      page.evaluate(() => {
        const { activeElement: element } = document;
        return element === document.body ? "" : (element?.textContent ?? "");
      }),
  };
}
