import type { Page } from "playwright-core";
import { buildTimeoutMs } from "../../gateway/console/limits.ts";

/** Screens of a key that may do everything, by their paths. */
export const keyScreens = [
  "/console/",
  "/console/playground",
  "/console/models",
  "/console/usage",
  "/console/requests",
  "/console/jobs",
  "/console/files",
  "/console/keys",
  "/console/billing",
  "/console/billing?tab=holds",
  "/console/billing?tab=alerts",
  "/console/webhooks",
] as const;

export const operatorScreens = [
  "/console/operator/accounts",
  "/console/operator/keys",
  "/console/operator/jobs",
  "/console/operator/holds",
  "/console/operator/ledger",
  "/console/operator/catalog",
  "/console/operator/upstreams",
  "/console/operator/audit",
] as const;

/** Milliseconds for a hook that waits for the build, and starts a world and a browser beside it. */
export const openConsoleMs = buildTimeoutMs + 30_000;

/** Waits until the console of a fresh clone is built, which takes some seconds once. */
export async function untilBuilt(origin: string): Promise<void> {
  const deadline = Date.now() + buildTimeoutMs;
  while ((await fetch(`${origin}/console/`)).status === 503) {
    if (Date.now() > deadline) throw new Error("the console was not built");
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

/** Signs in by the form. */
export async function signIn(page: Page, origin: string, secret: string): Promise<void> {
  await page.goto(`${origin}/console/`);
  await page.locator("input[name=secret]").fill(secret);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("h1:not(:text('Sign in'))").waitFor();
}

/** Goes to a screen and waits until all that it asks for has come. */
export async function visit(page: Page, origin: string, path: string): Promise<void> {
  await page.goto(origin + path);
  await page.locator("h1").waitFor();
  await untilLoaded(page);
}

/**
 * Waits until a screen asks for nothing more. By a selector: the page's policy refuses a function that is evaluated in it
 * again and again.
 */
export async function untilLoaded(page: Page): Promise<void> {
  const loading = '.waiting, [aria-busy="true"], .loading-line.is-on';
  await page.locator(`html:not(:has(${loading}))`).waitFor({ state: "attached" });
}
