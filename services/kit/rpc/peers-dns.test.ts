import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Dispatcher } from "undici";
import { afterEach, describe, expect, test } from "vitest";
import { createLogger } from "#kit/base/logger.ts";
import { type ManualClock, manualClock, systemClock } from "#kit/time/clock.ts";
import { promptly } from "../../../test/support/promptly.ts";
import { until as eventually } from "../../../test/support/until.ts";
import { createDnsPeers, type DnsPeers, type DnsPeersOptions } from "./peers-dns.ts";
import type { CallOutcome, PeerPool, PickedPeer } from "./wire-pool.ts";

// One name, and servers at several addresses of the loopback, all at one port.

const stack: AsyncDisposableStack[] = [];
afterEach(async () => {
  for (const one of stack.splice(0)) await one.disposeAsync();
});

type Handler = (req: IncomingMessage, res: ServerResponse, address: string) => void;

/** The addresses of the name, and the servers there. */
interface Name {
  port: number;
  /** The answer of DNS. */
  addresses: string[];
  /** Requests by address. */
  served: Map<string, IncomingMessage[]>;
  listen(address: string): Promise<void>;
  /** Ends the process at an address, with its connections. */
  kill(address: string): Promise<void>;
  peers(options?: Partial<DnsPeersOptions>): DnsPeers;
}

async function nameOf(addresses: string[], handler: Handler = (_, res) => res.end("x")) {
  const servers = new Map<string, Server>();
  const owned = new AsyncDisposableStack();
  stack.push(owned);
  const name: Name = {
    port: 0,
    addresses,
    served: new Map(),
    async listen(address) {
      const server = createServer((req, res) => {
        name.served.set(address, [...(name.served.get(address) ?? []), req]);
        handler(req, res, address);
      });
      server.listen(name.port, address);
      await once(server, "listening");
      name.port = (server.address() as AddressInfo).port;
      servers.set(address, server);
    },
    async kill(address) {
      const server = servers.get(address);
      servers.delete(address);
      server?.closeAllConnections();
      server?.close();
      if (server) await once(server, "close");
    },
    peers: (options) =>
      owned.use(
        createDnsPeers({
          url: `http://peer.test:${name.port}`,
          log: createLogger("silent"),
          lookup: async () => [...name.addresses],
          ...options,
        }),
      ),
  };
  owned.defer(async () => {
    for (const address of [...servers.keys()]) await name.kill(address);
  });
  for (const address of addresses) await name.listen(address);
  return name;
}

const httpOf = ({ dispatcher }: PickedPeer) => dispatcher as Dispatcher;

/** Makes one call. Answers the address that it reached, or undefined where it got no answer. */
async function call(pool: PeerPool, path = "/", tried: string[] = []): Promise<string | undefined> {
  const peer = await pool.pick(tried);
  if (!peer) return undefined;
  const { origin } = peer;
  try {
    const answer = await httpOf(peer).request({ origin, path, method: "POST", body: "x" });
    await answer.body.text();
    peer.done("ok");
    return new URL(origin).hostname;
  } catch (error) {
    peer.done(outcomeOf(error));
    return undefined;
  }
}

function outcomeOf(error: unknown): CallOutcome {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall === "connect" || code === "UND_ERR_CONNECT_TIMEOUT" ? "unreachable" : "failed";
}

/** A call begun on an answer that stays open until the test ends it. */
async function openStream(pool: PeerPool) {
  const peer = (await pool.pick([])) ?? expect.unreachable("no address");
  const { body } = await httpOf(peer).request({ path: "/stream", method: "POST", body: "" });
  const chunks: string[] = [];
  const ended = (async () => {
    for await (const chunk of body) chunks.push(String(chunk));
    peer.done("ok");
  })();
  return { address: new URL(peer.origin).hostname, chunks, ended };
}

const [one, two, three] = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];

/** Settles what sockets and promises have under way. */
function until(what: string, holds: () => boolean, clock?: ManualClock, stepMs = 0) {
  return eventually(what, async () => {
    await clock?.advance(stepMs);
    return holds();
  });
}

describe("balance", () => {
  test.each([1, 7, 50])(
    "1,000 calls, %i at a time, go to each within a fifth of its share",
    async (atOnce) => {
      const name = await nameOf([one, two, three]);
      const pool = name.peers();
      const counts = new Map<string, number>();
      for (let i = 0; i < 1_000; i += atOnce) {
        const length = Math.min(atOnce, 1_000 - i);
        const peers = await Promise.all(Array.from({ length }, () => pool.pick([])));
        for (const peer of peers) {
          counts.set(peer?.origin ?? "", (counts.get(peer?.origin ?? "") ?? 0) + 1);
          peer?.done("ok");
        }
      }
      const seen = [...counts.values()];
      expect([seen.length, seen.reduce((sum, n) => sum + n)]).toEqual([3, 1_000]);
      for (const count of seen) expect(Math.abs(count - 1_000 / 3)).toBeLessThan(0.2 * (1_000 / 3));
    },
  );

  test("calls under way are spread as they end, and all are answered", async () => {
    const name = await nameOf([one, two, three]);
    const pool = name.peers();
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        for (let i = 0; i < 6; i++) expect(await call(pool)).toBeDefined();
      }),
    );
    const counts = [...name.served.values()].map((requests) => requests.length);
    expect(counts.reduce((sum, n) => sum + n)).toBe(120);
    for (const count of counts) expect(Math.abs(count - 40)).toBeLessThanOrEqual(8);
  });

  test("an address that is slow gets fewer calls", async () => {
    const name = await nameOf([one, two], (_, res, address) => {
      if (address === one) setTimeout(() => res.end(), 100);
      else res.end();
    });
    const pool = name.peers();
    const places = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const seen = [];
        for (let i = 0; i < 20; i++) seen.push(await call(pool));
        return seen;
      }),
    );
    const slow = places.flat().filter((address) => address === one).length;
    expect(slow).toBeGreaterThan(0);
    expect(slow).toBeLessThan(60);
  });

  test("the Host header stays the name, and connections are kept", async () => {
    const name = await nameOf([one, two]);
    const pool = name.peers();
    for (let i = 0; i < 20; i++) await call(pool);
    const requests = [...name.served.values()].flat();
    expect(new Set(requests.map((req) => req.headers.host))).toEqual(
      new Set([`peer.test:${name.port}`]),
    );
    expect(new Set(requests.map((req) => req.socket)).size).toBe(2);
  });

  test("an affinity goes to one address from everywhere, however busy it is; without it, to another", async () => {
    const name = await nameOf([one, two, three]);
    const [pool, elsewhere] = [name.peers(), name.peers()];
    await Promise.all([pool.pick([]), elsewhere.pick([])]);
    const homes = new Map<string, string>();
    const picked = [];
    for (let n = 0; n < 30; n++) {
      const peer = (await pool.pick([], `affinity-${n}`)) ?? expect.unreachable("no address");
      homes.set(`affinity-${n}`, peer.origin);
      picked.push(peer);
    }
    expect(new Set(homes.values()).size).toBe(3);
    for (const [affinity, origin] of homes) {
      const again = await pool.pick([], affinity);
      expect(again?.origin).toBe(origin);
      if (again) picked.push(again);
      expect((await elsewhere.pick([], affinity))?.origin).toBe(origin);
      expect((await elsewhere.pick([origin], affinity))?.origin).not.toBe(origin);
    }
    // Calls without an affinity choose the address with the fewest open calls. They find out that one is gone.
    for (const peer of picked) peer.done("ok");
    await name.kill(two);
    while (pool.addresses().length > 2) await call(pool);
    for (const [affinity, origin] of homes) {
      const now = (await pool.pick([], affinity))?.origin;
      if (origin.includes(two)) expect(now).toMatch(/127\.0\.0\.[13]:/);
      else expect(now).toBe(origin);
    }
  });

  test("long streams stand in no other call's way", async () => {
    const open: ServerResponse[] = [];
    const name = await nameOf([one], (req, res) => {
      if (req.url !== "/stream") return void res.end();
      open.push(res);
      res.write("begun");
    });
    const pool = name.peers();
    const streams = await Promise.all(Array.from({ length: 300 }, () => openStream(pool)));
    expect(await call(pool)).toBe(one);
    for (const res of open) res.end(" ended");
    await Promise.all(streams.map((stream) => stream.ended));
    expect(new Set(streams.map(({ chunks }) => chunks.join("")))).toEqual(new Set(["begun ended"]));
  });
});

describe("an address that dies", () => {
  test("is left out within a second, and used again once it is back", async () => {
    const name = await nameOf([one, two, three]);
    const pool = name.peers();
    for (let i = 0; i < 9; i++) await call(pool);
    await name.kill(two);
    let lost = 0;
    await promptly(1_000, async () => {
      while (pool.addresses().length > 2) if (!(await call(pool))) lost++;
    });
    expect(lost).toBeLessThanOrEqual(3);
    for (let i = 0; i < 100; i++) expect(await call(pool)).toMatch(/^127\.0\.0\.[13]$/);
    await name.listen(two);
    await until("it is back", () => pool.addresses().length === 3);
    const places = new Set<string | undefined>();
    for (let i = 0; i < 9; i++) places.add(await call(pool));
    expect(places).toEqual(new Set([one, two, three]));
  });

  test("is avoided by a retry before it is known to be down", async () => {
    const name = await nameOf([one, two]);
    const pool = name.peers();
    await call(pool);
    const tried = [`http://${one}:${name.port}`];
    for (let i = 0; i < 10; i++) expect(await call(pool, "/", tried)).toBe(two);
    // Where there is no other address, the tried one is used.
    name.addresses = [one];
    await until("the other is gone", () => pool.addresses().length === 1);
    expect(await call(pool, "/", tried)).toBe(one);
  });

  test("is probed with growing pauses", async () => {
    const manual = manualClock();
    const pauses: number[] = [];
    const clock = {
      ...manual,
      sleep(ms: number, signal?: AbortSignal) {
        pauses.push(ms);
        return manual.sleep(ms, signal);
      },
    };
    const name = await nameOf([one, two]);
    const pool = name.peers({ clock });
    await call(pool);
    // From here on the pauses are those of probes, and the two between look-ups.
    pauses.length = 0;
    await name.kill(one);
    while (pool.addresses().length > 1) await call(pool);
    const probes = () => pauses.filter((ms) => ms !== 250 && ms !== 1_750);
    for (let nth = 1; nth <= 7; nth++) {
      await until("the pause", () => probes().length >= nth);
      await manual.advance(probes().at(-1) ?? 0);
    }
    expect(probes().slice(0, 7)).toEqual([100, 200, 400, 800, 1_600, 2_000, 2_000]);
    await name.listen(one);
    await until("it is back", () => pool.addresses().length === 2, manual, 2_000);
  });

  test("when all are down each call tries one all the same", async () => {
    const name = await nameOf([one, two]);
    const pool = name.peers({ clock: manualClock() });
    await call(pool);
    await name.kill(one);
    await name.kill(two);
    while (pool.addresses().length > 0) await call(pool);
    await name.listen(one);
    await name.listen(two);
    // The clock does not move, so no probe runs. The calls find it out.
    expect(await call(pool)).toBeDefined();
    expect(pool.addresses().length).toBeGreaterThan(0);
  });
});

describe("a name whose addresses change", () => {
  test("a new address is used within 5 s", async () => {
    const clock = manualClock();
    const name = await nameOf([one]);
    const pool = name.peers({ clock });
    expect(await call(pool)).toBe(one);
    await name.listen(two);
    name.addresses = [one, two];
    await clock.advance(5_000);
    await until("two addresses", () => pool.addresses().length === 2, clock);
    expect(new Set([await call(pool), await call(pool)])).toEqual(new Set([one, two]));
  });

  test("a failed connection looks the name up at once", async () => {
    const clock = manualClock();
    const name = await nameOf([one]);
    const pool = name.peers({ clock });
    await call(pool);
    await clock.advance(250);
    await name.listen(two);
    await name.kill(one);
    name.addresses = [two];
    while (pool.addresses().includes(`http://${one}:${name.port}`)) await call(pool);
    await until("the other", () => pool.addresses().length === 1, clock);
    expect(await call(pool)).toBe(two);
  });

  test("a vanished address gets no new calls, and its open streams end by themselves", async () => {
    const open: ServerResponse[] = [];
    const name = await nameOf([one, two], (req, res) => {
      if (req.url !== "/stream") return void res.end();
      open.push(res);
      res.write("begun");
    });
    const clock = manualClock();
    const pool = name.peers({ clock });
    const streams = [await openStream(pool), await openStream(pool)];
    expect(streams.map(({ address }) => address).sort()).toEqual([one, two]);
    name.addresses = [two];
    await clock.advance(2_000);
    await until("one address", () => pool.addresses().length === 1, clock);
    for (let i = 0; i < 10; i++) expect(await call(pool)).toBe(two);
    await clock.advance(60_000);
    for (const res of open) res.end(" ended");
    await Promise.all(streams.map((stream) => stream.ended));
    for (const { chunks } of streams) expect(chunks.join("")).toBe("begun ended");
  });

  test("while DNS fails or knows nothing the last answer stays", async () => {
    const clock = manualClock();
    const name = await nameOf([one]);
    let lookUps = 0;
    const pool = name.peers({
      clock,
      lookup: async () => {
        lookUps++;
        if (lookUps === 2) throw Object.assign(new Error("no"), { code: "EAI_AGAIN" });
        return lookUps === 3 ? [] : [one];
      },
    });
    for (let i = 1; i < 5; i++) {
      await until("it was asked", () => lookUps >= i, clock);
      expect(await call(pool)).toBe(one);
      await clock.advance(2_000);
    }
  });

  test("the first call waits for the first answer; without one there is no address", async () => {
    const name = await nameOf([one]);
    const answer = Promise.withResolvers<string[]>();
    const early = call(name.peers({ lookup: () => answer.promise }));
    answer.resolve([one]);
    expect(await early).toBe(one);
    const clock = manualClock();
    const lost = name.peers({ clock, lookup: () => new Promise(() => {}) });
    const waiting = lost.pick([]);
    await clock.advance(2_000);
    expect(await waiting).toBeUndefined();
    const failing = name.peers({ lookup: () => Promise.reject(new Error("no")) });
    expect(await failing.pick([])).toBeUndefined();
  });

  test("an address in the URL and the system's resolver serve too", async () => {
    const name = await nameOf([one]);
    const { port } = name;
    for (const url of [`http://127.0.0.1:${port}`, `http://localhost:${port}/`]) {
      await using pool = createDnsPeers({ url, log: createLogger("silent") });
      while (!(await call(pool))) await systemClock.sleep(10);
      expect(await call(pool)).toBe(one);
    }
  });
});
