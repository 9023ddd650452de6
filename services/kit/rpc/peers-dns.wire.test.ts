import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, Server as NetServer } from "node:net";
import { createClient } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { CatalogService } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { until } from "../../../test/support/until.ts";
import { severalPeers } from "../../host/several-peers.ts";
import { createDnsPeers } from "./peers-dns.ts";
import { rpcService } from "./service.ts";
import { refuseNotStarted } from "./wire/not-started.ts";
import { createWireServer } from "./wire-server.ts";
import { createWireTransport } from "./wire-transport.ts";

// The mesh's transport over a name with three addresses, one of which stops.

const owned: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of owned.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

/** A replica that counts its calls. Killing it closes its port and every connection. `isGoing`: its answers announce that it stops. */
async function replica(address: string, port: number) {
  const state = {
    calls: 0,
    connections: 0,
    isGoing: false,
    hasStarted: true,
    port,
    async kill() {},
  };
  const catalog = rpcService(CatalogService, {
    checkDraft: () => ({}),
    getText: () => ({}),
    listVersions: () => ({}),
    putInForce: () => ({}),
    listUpstreamKeys: () => ({}),
    setUpstreamKey: () => ({}),
    deleteUpstreamKey: () => ({}),
    getSnapshot() {
      state.calls++;
      return {};
    },
    async *watchSnapshots(_, { signal }) {
      yield {};
      if (!signal.aborted) await once(signal, "abort");
    },
  });
  const wire = createWireServer({ services: [catalog], interceptors: [] });
  const server = createServer((req, res) => {
    if (state.isGoing) res.setHeader("connection", "close");
    if (!state.hasStarted) return refuseNotStarted(req, res);
    if (!wire.handler(req, res)) res.writeHead(404).end();
  });
  server.on("connection", () => state.connections++);
  server.listen(port, address);
  await once(server, "listening");
  state.port = (server.address() as AddressInfo).port;
  state.kill = async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  };
  owned.push({
    [Symbol.asyncDispose]: () => (server.listening ? state.kill() : Promise.resolve()),
  });
  return state;
}

test("calls are spread, streams too; when a replica dies its share goes to the others", async () => {
  const first = await replica("127.0.0.1", 0);
  const second = await replica("127.0.0.2", first.port);
  const third = await replica("127.0.0.3", first.port);
  const { pool, client } = clientOf(first.port, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
  for (let i = 0; i < 90; i++) await client.getSnapshot({});
  expect([first.calls, second.calls, third.calls]).toEqual([30, 30, 30]);

  // Streams are open beside calls. The replica that dies ends its own.
  const stop = new AbortController();
  const endings = Array.from({ length: 3 }, async () => {
    for await (const _ of client.watchSnapshots({}, { signal: stop.signal }));
  }).map((watch) =>
    watch.then(
      () => "ended",
      (error: Error) => error.message,
    ),
  );
  await client.getSnapshot({});
  await second.kill();
  expect(await Promise.race(endings)).toMatch(/unavailable/);
  const before = first.calls + third.calls;
  for (let i = 0; i < 100; i++) await client.getSnapshot({});
  expect(first.calls + third.calls - before).toBe(100);
  await until("it is known to be down", () => pool.addresses().length === 2);
  stop.abort();
  expect((await Promise.all(endings)).filter((said) => /unavailable/.test(said))).toHaveLength(1);
});

/** A client of the name, with the name's addresses. */
function clientOf(port: number, addresses: string[]) {
  const name = { addresses, lookup: async () => name.addresses };
  const baseUrl = `http://catalog.test:${port}`;
  const pool = createDnsPeers({
    url: baseUrl,
    log: createLogger("silent"),
    lookup: () => name.lookup(),
  });
  owned.push(pool);
  return {
    name,
    pool,
    client: createClient(CatalogService, createWireTransport({ pool, baseUrl })),
  };
}

test("all replicas are replaced between two look-ups: the call that finds none of them finds the new ones", async () => {
  const before = [await replica("127.0.0.1", 0)];
  const { port } = before[0] as { port: number };
  before.push(await replica("127.0.0.2", port), await replica("127.0.0.3", port));
  const { name, client } = clientOf(port, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
  for (let i = 0; i < 3; i++) await client.getSnapshot({});
  for (const one of before) await one.kill();
  const after = await replica("127.0.0.4", port);
  name.addresses = ["127.0.0.4"];
  await client.getSnapshot({});
  expect(after.calls).toBe(1);
});

test("an answer of the resolver that was under way when none could be reached is not taken for the new one", async () => {
  const before = await replica("127.0.0.1", 0);
  const { name, pool, client } = clientOf(before.port, ["127.0.0.1"]);
  await client.getSnapshot({});
  const slow = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const old = name.addresses;
  name.lookup = async () => {
    asked.resolve();
    await slow.promise;
    return old;
  };
  await asked.promise;
  await before.kill();
  const after = await replica("127.0.0.4", before.port);
  const called = client.getSnapshot({});
  await until("it is known to be down", () => pool.addresses().length === 0);
  name.addresses = ["127.0.0.4"];
  name.lookup = async () => name.addresses;
  slow.resolve();
  await called;
  expect(after.calls).toBe(1);
});

test("a replica that says it is going is asked only where there is no other", async () => {
  const first = await replica("127.0.0.1", 0);
  const second = await replica("127.0.0.2", first.port);
  const { client } = clientOf(first.port, ["127.0.0.1", "127.0.0.2"]);
  first.isGoing = true;
  for (let i = 0; i < 20; i++) await client.getSnapshot({});
  expect(first.calls).toBe(1);
  expect(second.calls).toBe(19);
  await second.kill();
  await client.getSnapshot({});
  expect(first.calls).toBe(2);
});

test("a rolling restart: the one that was back is asked, though it said it was going, where the other is gone", async () => {
  const first = await replica("127.0.0.1", 0);
  const second = await replica("127.0.0.2", first.port);
  const pools = [first, second].map(({ port }, i) => {
    const url = `http://127.0.0.${i + 1}:${port}`;
    const pool = createDnsPeers({ url, log: createLogger("silent") });
    owned.push(pool);
    return pool;
  });
  const baseUrl = `http://127.0.0.1:${first.port}`;
  const transport = createWireTransport({ pool: severalPeers(pools), baseUrl });
  const client = createClient(CatalogService, transport);
  for (let i = 0; i < 4; i++) await client.getSnapshot({});
  first.isGoing = true;
  for (let i = 0; i < 4; i++) await client.getSnapshot({});
  first.isGoing = false;
  // One is known to be down, the other listens but has not started. Neither keeps a call from the first.
  await second.kill();
  for (let i = 0; i < 10; i++) await client.getSnapshot({});
  const again = await replica("127.0.0.2", first.port);
  again.hasStarted = false;
  await until("it is known to be up", () => pools[1]?.addresses().length === 1);
  for (let i = 0; i < 10; i++) await client.getSnapshot({});
  expect(again.calls).toBe(0);
});

test("a replica that says it is going keeps no idle connection on which a call could be lost", async () => {
  const only = await replica("127.0.0.1", 0);
  const { client } = clientOf(only.port, ["127.0.0.1"]);
  await Promise.all(Array.from({ length: 4 }, () => client.getSnapshot({})));
  expect(only.connections).toBe(4);
  await client.getSnapshot({});
  expect(only.connections).toBe(4);
  only.isGoing = true;
  await client.getSnapshot({});
  only.isGoing = false;
  // The call uses none of the three attempts that are left.
  await client.getSnapshot({});
  expect(only.connections).toBe(5);
});
