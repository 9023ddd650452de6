import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testCatalog } from "../e2e/catalog.ts";
import { askConsole, ownPage, signIn } from "../edge/console-client.ts";
import { slowness } from "../support/reference-machine.ts";
import { startWatched, type WatchedProcess } from "../support/watched-process.ts";

// There are several operators' sessions, and many pages in an operator's browser. So their bodies have the bounds of callers.

/** Milliseconds for which one request may block the event loop at most, on a machine as fast as the reference. */
const mostMs = 50;
const kib = 1024;
const mib = 1024 * kib;

let watched: WatchedProcess;
let cookie: string;
beforeAll(async () => {
  const nowhere = "http://127.0.0.1:9/v1";
  watched = await startWatched(testCatalog({ main: nowhere, backup: nowhere, nowhere }));
  cookie = await signIn(Number(new URL(watched.baseUrl).port), watched.adminToken);
});
afterAll(() => watched?.[Symbol.asyncDispose]());

const send = (method: string, path: string, body: string) =>
  askConsole(Number(new URL(watched.baseUrl).port), `/console/api/admin${path}`, {
    ...{ method, cookie, body },
    headers: {
      ...ownPage,
      "content-type": "application/json",
      "x-console-secret": watched.adminToken,
    },
  });

/** Names that no body had before. */
function names(count: number): string {
  const salt = Math.random().toString(36).slice(2, 5);
  return Array.from({ length: count }, (_, at) => `"${salt}${at.toString(36)}":0`).join(",");
}
/** As many as fit. */
const full = () => names(85_000);

const routes = [
  ["POST", "/accounts"],
  ["POST", "/accounts/acc_1/top-up"],
  ["POST", "/accounts/acc_1/refund"],
  ["POST", "/accounts/acc_1/take-back"],
  ["POST", "/accounts/acc_1/close"],
  ["PATCH", "/accounts/acc_1"],
  ["PATCH", "/accounts/acc_1/alerts"],
  ["POST", "/keys"],
  ["POST", "/operators"],
  ["PATCH", "/keys/key_1"],
  ["POST", "/keys/key_1/rotate"],
  ["POST", "/jobs/job_1/retry"],
  ["POST", "/holds/hold_1/settle"],
  ["POST", "/holds/hold_1/release"],
] as const;

describe.each(routes)("%s %s", (method, path) => {
  test.each([
    ["64 KiB and a byte", () => `{"name":"${"x".repeat(64 * kib - 10)}"}`],
    ["501 names", () => `{${names(501)}}`],
    ["1 MiB of new names", () => `{${full()}}`],
  ])("a body of %s is refused unparsed", async (_, body) => {
    const { status, json } = await send(method, path, body());
    expect([status, json.error.code]).toEqual([413, "payload_too_large"]);
  });
});

test.each([
  ["names", () => `,${full()},${full()}`],
  ["values", () => `,"more":[${"1,".repeat(200)}1]`],
])("a draft of the catalog with many %s beside it is refused unparsed", async (_, more) => {
  const { status, json } = await send("POST", "/catalog/check", `{"yaml":"models: 7"${more()}}`);
  expect([status, json.error.code]).toEqual([413, "payload_too_large"]);
});

test("no body of an operator keeps the event loop for 50 ms", async () => {
  const bodies: [string, string, () => string][] = [
    ["names of a key", "/keys", () => `{${full()}}`],
    ["names beside a draft", "/catalog/check", () => `{"yaml":"",${full()},${full()}}`],
    ["objects in a draft", "/catalog/check", () => `{"yaml":[${"{},".repeat(140_000)}{}]}`],
    ["a draft of escapes", "/catalog/check", () => `{"yaml":"${'\\"'.repeat(mib - 100)}"}`],
  ];
  const found: [string, number][] = [];
  for (const [name, path, make] of bodies) {
    let leastMs = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 3 && leastMs > mostMs / 2; round++) {
      const body = make();
      await watched.worstDelayMs();
      await send("POST", path, body);
      leastMs = Math.min(leastMs, await watched.worstDelayMs());
    }
    process.stdout.write(`${leastMs.toFixed(0).padStart(6)} ms  ${name}\n`);
    found.push([name, leastMs]);
  }
  expect(found.filter(([, ms]) => ms > mostMs * slowness())).toEqual([]);
});
