import { describe } from "vitest";
import { aDayWithTheConsole } from "../console/day.ts";
import { browserNote, chromiumPath } from "../support/browser.ts";
import { describeMesh } from "./servers.ts";
import { startTwoGateways } from "./two-gateways.ts";

/** Milliseconds. Eight processes share the cores of a test machine, and the console is built beside them. */
const startWithinMs = 170_000;

describe.skipIf(chromiumPath === undefined)(`a day on a mesh${browserNote}`, async () => {
  await describeMesh("with two gateways that take turns", () => {
    aDayWithTheConsole(startTwoGateways, startWithinMs);
  });
});
