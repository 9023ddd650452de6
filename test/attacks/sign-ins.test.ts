import { afterEach, beforeEach, expect, test } from "vitest";
import { signInBodyBytes, signInBodyMs } from "../../gateway/console/limits.ts";
import { bodySweepMs, smallBodyBytes } from "../../gateway/limits.ts";
import { askConsole, ownPage, signIn } from "../edge/console-client.ts";
import { openRaw, type RawConnection } from "../edge/raw.ts";
import { type EdgeWorld, edgeAdminToken, startEdge } from "../edge/world.ts";
import { until } from "../support/until.ts";

// Announced sign-ins that never arrive, without any key. They delay neither other users' sign-ins nor operators.

const mib = 1024 * 1024;
const [here, elsewhere] = ["127.0.0.1", "127.0.0.2"] as const;
/** As many as fill the room of an account without a payment so far. */
const filling = smallBodyBytes / signInBodyBytes;
const begun = '{"secret":"';

let edge: EdgeWorld;
const open: RawConnection[] = [];
beforeEach(async () => {
  // The room of small bodies is twice the least share of one account.
  const settings = { maxBytesInFlight: mib, console: { operatorToken: edgeAdminToken } };
  edge = await startEdge({ settings });
});
afterEach(async () => {
  for (const connection of open.splice(0)) connection[Symbol.dispose]();
  await edge[Symbol.asyncDispose]();
});

async function fillFrom(address: string): Promise<void> {
  for (let i = 0; i < filling; i++) {
    const connection = await openRaw(edge.port, here, address);
    open.push(connection);
    connection.send(
      "POST /console/api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n" +
        `Content-Type: application/json\r\nContent-Length: ${signInBodyBytes}\r\n\r\n${begun}`,
    );
  }
  await until("their room to be taken", async () =>
    (await edge.metrics.text()).includes(`genmesh_http_body_bytes ${filling * begun.length}\n`),
  );
}

/** Lets time pass until the work has ended. */
async function settled<T>(work: Promise<T>): Promise<T> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  work.then(over, over);
  await until("an answer", async () => {
    await edge.clock.advance(250);
    return isOver;
  });
  return work;
}

test("half-sent sign-ins of one address hold up no sign-in of another", async () => {
  await fillFrom(elsewhere);
  expect(await settled(signIn(edge.port, edge.key))).toContain("=");
  // The others' connections were not ended for that.
  expect(open.some((connection) => connection.received() !== "")).toBe(false);
});

test("nor what an operator does at that address", async () => {
  const cookie = await signIn(edge.port, edgeAdminToken);
  await fillFrom(here);
  const answer = await settled(
    askConsole(edge.port, "/console/api/admin/catalog/check", {
      ...{ method: "POST", headers: ownPage, cookie },
      body: { yaml: "models: []" },
    }),
  );
  expect(answer.status).toBe(200);
});

test("one that is not whole after some seconds is refused, and those of its address go on", async () => {
  await fillFrom(here);
  const waiting = signIn(edge.port, edge.key);
  for (let ms = 0; ms < signInBodyMs + bodySweepMs; ms += 250) {
    // A byte now and then does not keep a place.
    for (const connection of open) connection.send("x");
    await edge.clock.advance(250);
  }
  for (const connection of open) {
    expect(await connection.until((text) => text.includes("\r\n\r\n"))).toMatch(/^HTTP\/1.1 400 /);
  }
  expect(await waiting).toContain("=");
});
