import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openRaw, type RawConnection } from "../edge/raw.ts";
import { type EdgeWorld, startEdge } from "../edge/world.ts";
import { until } from "../support/until.ts";

const connections = { total: 6, each: 3 };
/** Two machines, and a proxy of many callers. */
const [one, another, proxy] = ["127.0.0.1", "127.0.0.2", "127.0.0.3"] as const;

let edge: EdgeWorld;
let open: RawConnection[];
/** The number of requests for text. */
let asked: number;
beforeEach(async () => {
  open = [];
  asked = 0;
  edge = await startEdge({
    settings: { connections, trustProxy: proxy, console: {} },
    text: {
      // Never answers.
      async generate(_request, { signal }) {
        asked++;
        await once(signal, "abort");
        return {};
      },
    },
  });
});
afterEach(async () => {
  for (const connection of open) connection[Symbol.dispose]();
  await edge[Symbol.asyncDispose]();
});

async function connectFrom(address: string): Promise<RawConnection> {
  const connection = await openRaw(edge.port, one, address);
  open.push(connection);
  return connection;
}

/** Does the connection have a place, so that its request is answered? */
async function isServed(connection: RawConnection): Promise<boolean> {
  const before = connection.received().length;
  connection.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  const answer = connection.until((text) => text.length > before && text.endsWith("ok\n"));
  return answer.then(
    () => true,
    () => false,
  );
}

/** A connection on which a request with a valid key was answered. */
async function keyedFrom(address: string, key: string): Promise<RawConnection> {
  const caller = await connectFrom(address);
  caller.send(`GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  await caller.until((text) => text.startsWith("HTTP/1.1 200") && text.endsWith("}"));
  return caller;
}

/** Connections of that kind, each of an account of its own. */
async function keyedOf(addresses: readonly string[]): Promise<RawConnection[]> {
  const callers: RawConnection[] = [];
  for (const address of addresses) callers.push(await keyedFrom(address, await edge.makeAccount()));
  return callers;
}

async function servedOf(addresses: readonly string[]): Promise<boolean[]> {
  const served: boolean[] = [];
  for (const address of addresses) served.push(await isServed(await connectFrom(address)));
  return served;
}

test("an address over its bound is turned away, and another one is served", async () => {
  expect(await servedOf([one, one, one, one, one])).toEqual([true, true, true, false, false]);
  expect(await servedOf([another])).toEqual([true]);
  // Its open connections still work, and it can use a place that becomes free.
  const [first, second] = open;
  expect(second && (await isServed(second))).toBe(true);
  first?.[Symbol.dispose]();
  await until("its free place", async () => isServed(await connectFrom(one)));
  expect(await servedOf([one])).toEqual([false]);
});

test("all addresses together have the total, which becomes free again", async () => {
  const callers = await keyedOf([one, one, one, another, another, another]);
  expect(await servedOf(["127.0.0.4", one, another, proxy])).toEqual(Array(4).fill(false));
  callers[0]?.[Symbol.dispose]();
  await until("a free place", async () => isServed(await connectFrom("127.0.0.4")));
});

test("connections without a key give way to newcomers at the total, those with one stay", async () => {
  const [caller] = await keyedOf([one]);
  // Nothing sent, part of a head, and a refused request: from two addresses, up to the total.
  const refused = await connectFrom(one);
  refused.send("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
  await refused.until((text) => text.startsWith("HTTP/1.1 401"));
  const partial = await connectFrom(one);
  partial.send("GET /v1/models HTTP/1.1\r\nHost: x\r\nX-A: ");
  for (let i = 0; i < 3; i++) await connectFrom(another);
  // All other callers are served nevertheless, and keep their places once they have shown a key.
  const others = await keyedOf(["127.0.0.4", "127.0.0.5"]);
  await partial.closed();
  expect(await servedOf(["127.0.0.6", "127.0.0.7", "127.0.0.8"])).toEqual(Array(3).fill(true));
  for (const each of [caller, ...others]) expect(each && (await isServed(each))).toBe(true);
});

test("an account that has all connections gives way to newcomers, from any addresses", async () => {
  const [few, other] = [await edge.makeAccount(), await edge.makeAccount()];
  const kept = await keyedFrom("127.0.0.4", few);
  const taken: RawConnection[] = [];
  for (const address of [one, one, one, another, another]) {
    taken.push(await keyedFrom(address, edge.key));
  }
  // The caller sends further requests, so that no connection is closed as idle.
  for (const each of taken) expect(await isServed(each)).toBe(true);
  const came = [await keyedFrom("127.0.0.5", other), await keyedFrom("127.0.0.6", other)];
  await taken[0]?.closed();
  await taken[1]?.closed();
  for (const each of [kept, ...came, ...taken.slice(2)]) expect(await isServed(each)).toBe(true);
});

/** A request with a body of which one byte has arrived. With `key` its connection has shown that key before. */
async function drippingFrom(address: string, path: string, key?: string): Promise<RawConnection> {
  const caller = key === undefined ? await connectFrom(address) : await keyedFrom(address, key);
  const authorization = key === undefined ? "" : `Authorization: Bearer ${key}\r\n`;
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n${authorization}`;
  const type = path === "/v1/files" ? "multipart/form-data; boundary=x" : "application/json";
  caller.send(`${head}Content-Type: ${type}\r\nContent-Length: 1000\r\n\r\n `);
  return caller;
}

/** Lets each connection send one more byte every second. */
async function drip(callers: readonly RawConnection[], seconds = 3): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await delay(20);
    await edge.clock.advance(1_000);
    for (const caller of callers) if (!caller.socket.closed) caller.send(" ");
  }
}

test("an account whose requests drip on all connections gives way to newcomers, with any requests", async () => {
  const other = await edge.makeAccount();
  const kept = await keyedFrom("127.0.0.4", await edge.makeAccount());
  const paths = ["/v1/chat/completions", "/v1/keys", "/v1/files", "/v1/images/generations"];
  const taken: RawConnection[] = [];
  for (const [at, path] of [...paths, "/v1/responses"].entries()) {
    taken.push(await drippingFrom(at < 3 ? one : another, path, edge.key));
  }
  await drip(taken);
  const came = [await keyedFrom("127.0.0.5", other), await keyedFrom("127.0.0.6", other)];
  expect(taken.filter(({ socket }) => socket.closed)).toHaveLength(2);
  for (const each of [kept, ...came]) expect(await isServed(each)).toBe(true);
});

test("so do those without a key that sign in at a drip", async () => {
  const kept = await keyedFrom("127.0.0.4", edge.key);
  const taken: RawConnection[] = [];
  for (const address of [one, one, another, another, "127.0.0.5"]) {
    taken.push(await drippingFrom(address, "/console/api/session"));
  }
  await drip(taken);
  expect(taken.filter(({ socket }) => socket.closed)).toEqual([]);
  expect(await isServed(await connectFrom("127.0.0.6"))).toBe(true);
  expect(await isServed(kept)).toBe(true);
});

test("a body that comes as fast as it may, and a request that waits for its answer, keep their connections", async () => {
  const taken = [];
  for (const address of [one, one, one, another, another, another]) {
    taken.push(await drippingFrom(address, "/v1/responses", edge.key));
  }
  // No caller is too slow yet.
  expect(await servedOf(["127.0.0.5"])).toEqual([false]);
  for (const caller of taken) caller.send(`${" ".repeat(998)}0`);
  await until("their requests", () => asked === taken.length);
  await drip([]);
  expect(await servedOf(["127.0.0.5"])).toEqual([false]);
  expect(taken.some(({ socket }) => socket.closed)).toBe(false);
});

test("a proxy that is trusted stands for many callers: the total alone holds for it", async () => {
  expect(await servedOf(Array(7).fill(proxy))).toEqual([...Array(6).fill(true), false]);
});
