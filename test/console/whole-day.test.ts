import { join } from "node:path";
import { describe, expect } from "vitest";
import { startRunning, tempFolder } from "../host/process.ts";
import { browserNote, chromiumPath } from "../support/browser.ts";
import { startTurnsFront } from "../support/turns-front.ts";
import { aDayWithTheConsole, type DayWorld } from "./day.ts";

/** Set for a new installation that runs already, for example on a cluster: its gateways, a key, and its operators' token. */
const {
  GENMESH_TEST_BASE_URL,
  GENMESH_TEST_API_KEY = "",
  GENMESH_TEST_ADMIN_TOKEN = "",
} = process.env;

describe.skipIf(chromiumPath === undefined)(`a day with the console${browserNote}`, () => {
  aDayWithTheConsole(GENMESH_TEST_BASE_URL ? () => installed(GENMESH_TEST_BASE_URL) : started);
});

/** The process of `npm start`. */
async function started(): Promise<DayWorld> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await tempFolder());
  const adminToken = "admin-token-of-a-whole-day";
  const mesh = stack.use(
    await startRunning({
      GENMESH_DATA_DIR: join(folder.path, "state"),
      GENMESH_ADMIN_TOKEN: adminToken,
      GENMESH_LOG_LEVEL: "warn",
    }),
  );
  const { origin, bannerKey: key = "" } = mesh;
  expect(mesh.stdout()).toContain(`console: ${origin}/console/`);
  const owned = stack.move();
  return { origin, key, adminToken, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function installed(baseUrl: string): Promise<DayWorld> {
  const front = await startTurnsFront();
  front.gateways = [new URL(baseUrl).origin];
  const { origin } = front;
  return {
    origin,
    key: GENMESH_TEST_API_KEY,
    adminToken: GENMESH_TEST_ADMIN_TOKEN,
    [Symbol.asyncDispose]: () => front[Symbol.asyncDispose](),
  };
}
