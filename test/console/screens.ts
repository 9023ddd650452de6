import type { Page } from "playwright-core";
import { buildTimeoutMs } from "../../gateway/console/limits.ts";
import { axeFindings } from "../support/browser.ts";

/** In a path, the place of the id of the account in question. */
export const accountMark = "ACCOUNT";

/** Screens of a key with all rights, by their paths. */
export const keyScreens = [
  "/console/",
  "/console/playground?kind=chat",
  "/console/playground?kind=image",
  "/console/playground?kind=video",
  "/console/playground?kind=music",
  "/console/playground?kind=speech",
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
  `/console/operator/accounts/${accountMark}`,
  `/console/operator/accounts/${accountMark}?tab=webhooks`,
  `/console/operator/accounts/${accountMark}?tab=alerts`,
  "/console/operator/keys",
  "/console/operator/requests",
  "/console/operator/jobs",
  "/console/operator/holds",
  "/console/operator/holds?tab=reviews",
  "/console/operator/ledger",
  "/console/operator/margin",
  "/console/operator/margin?by=day",
  "/console/operator/catalog",
  "/console/operator/notices",
  "/console/operator/upstreams",
  "/console/operator/upstreams?range=week&by=model",
  "/console/operator/audit",
  "/console/operator/operators",
  "/console/operator/own",
] as const;

/** Screens that ask for nothing when they open. The audit begins at a button. The admin token has no sign-in of its own. */
export const asksNothing: readonly string[] = ["/console/operator/ledger", "/console/operator/own"];

/** Milliseconds for a hook that waits for the build, and starts a world and a browser beside it. */
export const openConsoleMs = buildTimeoutMs + 30_000;

/** Waits until the console of a new clone is built, which takes some seconds once. */
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

/** Opens a screen and waits until its requests are answered. */
export async function visit(page: Page, origin: string, path: string): Promise<void> {
  await page.goto(origin + path);
  await page.locator("h1").waitFor();
  await untilLoaded(page);
}

/** Waits until a screen has no open request. It uses a selector, because the page's policy forbids evaluating a function repeatedly. */
export async function untilLoaded(page: Page): Promise<void> {
  const loading = '.waiting, [aria-busy="true"], .loading-line.is-on';
  await page.locator(`html:not(:has(${loading}))`).waitFor({ state: "attached" });
}

interface Look {
  colorScheme: "light" | "dark";
  width: number;
}

/** Both themes, wide and narrow. This is enough for the parts of a screen whose frame was checked in every look. */
const bothThemes: readonly Look[] = [
  { colorScheme: "light", width: 1280 },
  { colorScheme: "dark", width: 390 },
];
export const everyLook: readonly Look[] = [...bothThemes, { colorScheme: "dark", width: 1280 }];

/** The faults of the present page, a line each: those that axe finds, and excess width. */
export async function lookFindings(page: Page, looks = bothThemes): Promise<string[]> {
  const found: string[] = [];
  for (const { colorScheme, width } of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    const here = await axeFindings(page);
    if (await scrollsSideways(page)) here.push("the page scrolls sideways");
    found.push(...here.map((finding) => `${colorScheme} ${width}: ${finding}`));
  }
  return found;
}

/** Tables wider than their room, which hides a part of them. */
export function cutTables(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll(".table-wrap:not(.scrolls)")]
      .filter((one) => one.scrollWidth > one.clientWidth + 1)
      .map((one) => `the table "${one.querySelector("caption")?.textContent}" is cut off`),
  );
}

function scrollsSideways(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth > clientWidth;
  });
}

/** Presses of Tab between two looks at the remaining controls. */
const pressesAtOnce = 20;
/** Most presses for each control. A field for a date has a stop for its day, month, year and calendar. */
const pressesEach = 4;

/** Controls of the page that Tab never reaches, by their text or label. */
export async function unreachedByTab(page: Page): Promise<string[]> {
  const controls = await page.evaluate(() => {
    const kinds = "a[href], button, input, select, textarea, summary, audio, video, [tabindex='0']";
    const all = [...document.querySelectorAll(kinds)].filter(
      (one) => one.checkVisibility() && !one.matches(":disabled"),
    );
    for (const one of all) one.setAttribute("data-unreached", "");
    document.addEventListener("focusin", ({ target }) => {
      if (target instanceof Element) target.removeAttribute("data-unreached");
    });
    return all.length;
  });
  const unreached = page.locator("[data-unreached]");
  const most = controls * pressesEach + pressesAtOnce;
  for (let pressed = 0; pressed < most && (await unreached.count()) > 0; ) {
    for (let once = 0; once < pressesAtOnce; once += 1) await page.keyboard.press("Tab");
    pressed += pressesAtOnce;
  }
  return unreached.evaluateAll((left) =>
    left.map((one) => one.textContent || one.getAttribute("aria-label") || one.outerHTML),
  );
}
