import type { Browser, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { oneProcessOnly } from "../e2e/world.ts";
import { browserNote, chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { jumpsOf, openByAnswers, watchJumps } from "./jumps.ts";
import {
  accountMark,
  asksNothing,
  keyScreens,
  openConsoleMs,
  operatorScreens,
  signIn,
  untilBuilt,
} from "./screens.ts";
import { startUsedWorld, type UsedWorld } from "./used-world.ts";

const operatorToken = "operator-token-of-the-jumps-tests";
/**
 * The most that may move while a screen loads, by the browser's measure. The web calls a tenth good ("cumulative layout shift"), for pages
 * with advertisements. A fifth of that is a line of text above a full window: 21 of 900 pixels are 0.023.
 */
const mostShift = 0.02;

/** At one width answers come in the order of their requests, at the other in reverse. */
const looks: { width: number; next(waiting: Route[]): Route | undefined }[] = [
  { width: 1280, next: (waiting) => waiting.shift() },
  { width: 390, next: (waiting) => waiting.pop() },
];

describe.skipIf(chromiumPath === undefined)(`screens while they load${browserNote}`, () => {
  oneProcessOnly();

  let used: UsedWorld;
  let browser: Browser;

  beforeAll(async () => {
    used = await startUsedWorld(operatorToken);
    await untilBuilt(used.origin);
    browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await used?.[Symbol.asyncDispose]();
  });

  describe.each(looks)("at $width pixels", ({ width, next }) => {
    for (const [role, screens] of Object.entries({ key: keyScreens, operator: operatorScreens })) {
      describe(`of ${role === "key" ? "a key" : "the operator"}`, () => {
        let opened: Awaited<ReturnType<typeof openPage>>;

        beforeAll(async () => {
          opened = await openPage(browser, { width });
          await signIn(opened.page, used.origin, role === "key" ? used.owner.key : operatorToken);
          await watchJumps(opened.page);
        });
        afterAll(() => opened?.close());

        test.each(screens.filter((one) => !asksNothing.includes(one)))(
          "%s: nothing jumps while the answers come",
          async (path) => {
            const { page } = opened;
            const url = used.origin + path.replace(accountMark, used.owner.accountId);
            await openByAnswers(page, url, next);
            const { score, moved } = await jumpsOf(page);
            expect(score, moved.join("\n")).toBeLessThan(mostShift);
          },
        );
      });
    }
  });
});
