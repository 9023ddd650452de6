import { existsSync } from "node:fs";
import { AxeBuilder } from "@axe-core/playwright";
import { type Browser, chromium, type Page } from "playwright-core";

/** The path of a browser. "" skips tests that need one. */
const { GENMESH_TEST_CHROMIUM: named } = process.env;
const usual = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** A browser of this machine. Undefined where there is none, and tests that need one are skipped. */
export const chromiumPath =
  named === undefined ? usual.find((path) => existsSync(path)) : named || undefined;

/** For the title of skipped tests: the reason. Otherwise empty. */
export const browserNote = chromiumPath === undefined ? " (skipped: there is no Chromium)" : "";
if (chromiumPath === undefined) {
  process.stderr.write("skipped: tests in a browser: no Chromium (apt-get install chromium)\n");
}

export function openBrowser(): Promise<Browser> {
  if (chromiumPath === undefined) throw new Error("there is no Chromium: GENMESH_TEST_CHROMIUM");
  // Chromium has no sandbox for the user root, and containers run as root.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: chromiumPath, args });
}

export interface PageOptions {
  width?: number;
  colorScheme?: "light" | "dark";
  timezoneId?: string;
}

/** A page in a session of its own, and its faults: errors of scripts, and content that its policy refuses. */
export async function openPage(
  browser: Browser,
  { width = 1280, colorScheme = "light", timezoneId = "Europe/Berlin" }: PageOptions = {},
): Promise<{ page: Page; faults: string[]; close(): Promise<void> }> {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme,
    locale: "en-GB",
    timezoneId,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error.stack)));
  page.on("console", (message) => {
    // A refusal of the API is no fault, because pages show it as text.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      faults.push(message.text());
    }
  });
  return { page, faults, close: () => context.close() };
}

/** The faults that axe finds in a page, a line each. */
export async function axeFindings(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target.join(" ")}: ${failureSummary}`),
  );
}
