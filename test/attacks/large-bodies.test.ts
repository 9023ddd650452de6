import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { openRaw, type RawConnection } from "../edge/raw.ts";
import { freePort } from "../support/free-port.ts";
import { promptlyInTurns } from "../support/promptly.ts";
import { until } from "../support/until.ts";
import { startWatched, type WatchedProcess } from "../support/watched-process.ts";

const mib = 1024 * 1024;
/** More of them than fit into the process at once: 512 MiB. */
const count = 20;
const body = Buffer.concat([
  Buffer.from('{"model":"chat-1","input":"'),
  Buffer.alloc(30 * mib, "sea "),
  Buffer.from('"}'),
]);
/** Milliseconds by which another account's small request may be slower than on a quiet machine. */
const mostMoreMs = 1_500;

let watched: WatchedProcess;
let opsUrl: string;
let hostile: string;
let other: string;
beforeAll(async () => {
  const shipped = fileURLToPath(new URL("../../deploy/catalog.yaml", import.meta.url));
  const opsPort = await freePort();
  opsUrl = `http://127.0.0.1:${opsPort}`;
  const env = { GENMESH_OPS_PORT: String(opsPort) };
  watched = await startWatched(parse(readFileSync(shipped, "utf8")), env);
  hostile = (await watched.account()).key;
  other = (await watched.account()).key;
  // Both accounts are known to have paid.
  for (const key of [hostile, other]) expect(await askSmall(key)).toBe(200);
});
afterAll(() => watched?.[Symbol.asyncDispose]());

async function askSmall(key: string): Promise<number> {
  const answer = await fetch(`${watched.baseUrl}/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-1", input: "Say done", max_output_tokens: 16 }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

/** Bytes of bodies that have arrived and are held. */
async function bytesHeld(): Promise<number> {
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(/^genmesh_http_body_bytes (\d+)/m.exec(metrics)?.[1]);
}

const head = () =>
  [
    "POST /v1/responses HTTP/1.1",
    "host: x",
    `authorization: Bearer ${hostile}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "",
    "",
  ].join("\r\n");

async function connections(stack: AsyncDisposableStack): Promise<RawConnection[]> {
  const port = Number(new URL(watched.baseUrl).port);
  const all = await Promise.all(Array.from({ length: count }, () => openRaw(port)));
  stack.defer(() => {
    for (const one of all) one[Symbol.dispose]();
  });
  return all;
}

describe("a small request is answered while another account", () => {
  test("keeps as many bodies of 30 MiB half sent as the process could hold", async () => {
    await using stack = new AsyncDisposableStack();
    for (const one of await connections(stack)) {
      one.send(head());
      one.send(body.subarray(0, mib));
    }
    // Six of its share are read. The others wait unread.
    const share = 6 * mib;
    await until("its share to be used", async () => (await bytesHeld()) >= share);
    expect(await askSmall(other)).toBe(200);
    expect(await bytesHeld()).toBe(share);
  });

  test("sends bodies of 30 MiB at full speed", async () => {
    await promptlyInTurns(mostMoreMs, async ({ idle, real }) => {
      expect(await idle(() => askSmall(other))).toBe(200);
      await using stack = new AsyncDisposableStack();
      let ended = 0;
      for (const one of await connections(stack)) void sendAgainAndAgain(one, () => ended++);
      await until("the first of them to be over", () => ended > 0, { withinMs: 60_000 });
      for (let round = 0; round < 3; round++) {
        expect(await real(() => askSmall(other))).toBe(200);
      }
    });
  });
});

/** Until the connection is over. */
async function sendAgainAndAgain(connection: RawConnection, tell: () => void): Promise<void> {
  const { socket } = connection;
  try {
    while (!socket.destroyed) {
      const before = connection.received().length;
      socket.write(head());
      if (!socket.write(body)) await Promise.race([once(socket, "drain"), once(socket, "close")]);
      await connection.until((text) => text.length > before);
      tell();
    }
  } catch {
    // The test is over, and so is the connection.
  }
}
