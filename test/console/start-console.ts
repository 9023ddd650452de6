import type { Browser } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { oneProcessOnly, startWorld, type World } from "../e2e/world.ts";
import { openBrowser } from "../support/browser.ts";
import { openConsoleMs, untilBuilt } from "./screens.ts";

/** A world with its console, and a browser. */
export interface OpenConsole {
  world: World;
  browser: Browser;
  /** Scheme, host and port of the console. */
  origin: string;
}

/** Opens a console for the tests of a `describe`, in one process. Its fields are there from its hooks on. */
export function startConsole(options?: Parameters<typeof startWorld>[0]): OpenConsole {
  oneProcessOnly();
  const opened = {} as OpenConsole;
  beforeAll(async () => {
    opened.world = await startWorld(options);
    opened.origin = new URL(opened.world.baseUrl).origin;
    await untilBuilt(opened.origin);
    opened.browser = await openBrowser();
  }, openConsoleMs);
  afterAll(async () => {
    await opened.browser?.close();
    await opened.world?.[Symbol.asyncDispose]();
  });
  return opened;
}
