import { fork } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { type Client, createClient, type ServiceImpl, type Transport } from "@connectrpc/connect";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import type { Dispatcher } from "undici";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { refusingTransport } from "#kit/rpc/refusing-transport.ts";
import { rpcService } from "#kit/rpc/service.ts";
import { asksForFrames, serveFrames } from "#kit/rpc/wire/frames-server.ts";
import { createWireDispatcher, singlePeer } from "#kit/rpc/wire-pool.ts";
import { createWireServer } from "#kit/rpc/wire-server.ts";
import { createWireTransport } from "#kit/rpc/wire-transport.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";

/** Calls that run at once. */
const inFlight = 32;
/** Bytes of a request and of an answer: a short chat. */
const bodyBytes = 600;
/** Messages of a streamed answer, each one event. */
const eventsPerStream = 50;

/**
 * - `ours`: the mesh's own client and server. `frames`: the same, short calls on one connection. `library`: connect-es's client over undici's pool, beside the same server.
 * - `stock`: connect-node at both ends. `direct`: within one process.
 */
const kinds = ["ours", "frames", "library", "stock", "direct"] as const;
type Kind = (typeof kinds)[number];

const body = Buffer.alloc(bodyBytes, "x");
const event = Buffer.alloc(150, "e");

const service = rpcService(TextService, {
  generate: () => ({ body }),
  async *streamGenerate() {
    for (let i = 0; i < eventsPerStream; i++) yield { part: { case: "events", value: event } };
  },
} as Partial<ServiceImpl<typeof TextService>> as ServiceImpl<typeof TextService>);

function serve(kind: Kind): void {
  const ours = createWireServer({ services: [service], interceptors: [] });
  const stock = connectNodeAdapter({
    routes: (router) => router.service(service.desc, service.impl),
  });
  const server = createServer(
    { shouldUpgradeCallback: asksForFrames },
    kind === "stock" ? stock : (req, res) => void ours.handler(req, res),
  );
  if (kind === "frames") serveFrames(server);
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
  process.on("message", () => process.send?.(cpuMs()));
  process.on("disconnect", () => server.close().closeAllConnections());
}

function transportOf(kind: Kind, origin: string): Transport {
  if (kind === "direct") {
    const interceptors = { clientInterceptors: [], serverInterceptors: [] };
    return createDirectTransport({ services: () => [service], ...interceptors });
  }
  switch (kind) {
    case "ours":
      return refusingTransport(createWireTransport({ pool: singlePeer(origin), baseUrl: origin }));
    case "frames": {
      const pool = singlePeer(origin, { frames: true });
      return refusingTransport(createWireTransport({ pool, baseUrl: origin }));
    }
    case "library":
      return refusingTransport(libraryTransport(origin));
    case "stock":
      return refusingTransport(createConnectTransport({ baseUrl: origin, httpVersion: "1.1" }));
  }
}

/** connect-es's own client over undici. A pool of addresses and repeats would add their costs. */
function libraryTransport(origin: string): Transport {
  const dispatcher: Dispatcher = createWireDispatcher(origin);
  const bytes = 72 * 1024 * 1024;
  return createTransport({
    ...{ baseUrl: origin, useBinaryFormat: true, interceptors: [] },
    ...{ readMaxBytes: bytes, writeMaxBytes: bytes, compressMinBytes: bytes },
    ...{ acceptCompression: [], sendCompression: null },
    async httpClient({ url, method, header, body, signal }) {
      const parts: Uint8Array[] = [];
      for await (const part of body ?? []) parts.push(part);
      const reply = await dispatcher.request({
        ...{ origin, method: method as "POST", path: url.slice(origin.length) },
        headers: header as never,
        body: Buffer.concat(parts),
        signal: signal ?? null,
      });
      const headers = new Headers();
      for (const [name, value] of Object.entries(reply.headers)) headers.set(name, String(value));
      return {
        status: reply.statusCode,
        header: headers,
        body: reply.body,
        trailer: new Headers(),
      };
    },
  });
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

type Text = Client<typeof TextService>;
const headers = { authorization: "Bearer some-token-of-the-mesh", "x-request-id": "req_1" };

const works: Record<string, { work: (text: Text) => Promise<unknown>; weight: number }> = {
  unary: { work: (text) => text.generate({ body }, { headers, timeoutMs: 60_000 }), weight: 1 },
  stream: {
    async work(text) {
      for await (const _ of text.streamGenerate({ body }, { headers, timeoutMs: 60_000 }));
    },
    weight: 10,
  },
};

async function measure(kind: Kind, calls: number): Promise<void> {
  const child = kind === "direct" ? undefined : fork(import.meta.filename, ["--serve", kind]);
  const told = () => new Promise<number>((resolve) => child?.once("message", resolve as never));
  const port = child ? await told() : 0;
  const childCpu = () => {
    child?.send("cpu");
    return child ? told() : 0;
  };
  const text = createClient(TextService, transportOf(kind, `http://127.0.0.1:${port}`));
  for (const [name, { work, weight }] of Object.entries(works)) {
    const count = Math.ceil(calls / weight);
    // Code is compiled after it has run for a while, so warming takes a number of calls and no fixed time.
    await load(text, work, count);
    const alone = await latency(text, work, Math.ceil(count / 10));
    const before = { own: cpuMs(), server: await childCpu() };
    await load(text, work, count);
    const own = ((cpuMs() - before.own) * 1000) / count;
    const server = (((await childCpu()) - before.server) * 1000) / count;
    const cost = `client ${own.toFixed(0)} µs, server ${server.toFixed(0)} µs`;
    const line = `CPU per call: ${cost}; one at a time p50 ${alone.toFixed(0)} µs`;
    process.stdout.write(`${kind}\t${name}\t${line}\n`);
  }
  child?.disconnect();
}

/** The median of calls one after the other, in µs. */
async function latency(text: Text, work: (text: Text) => Promise<unknown>, count: number) {
  const took: number[] = [];
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    await work(text);
    took.push((performance.now() - began) * 1000);
  }
  return took.sort((a, b) => a - b)[count >> 1] ?? 0;
}

async function load(text: Text, work: (text: Text) => Promise<unknown>, count: number) {
  let left = count;
  const one = async () => {
    while (left-- > 0) await work(text);
  };
  await Promise.all(Array.from({ length: inFlight }, one));
}

const usage = `node bench/transport.ts [--calls N]: CPU time of one call, the mesh's own transport beside connect-node's

  --calls N   unary calls of a run, and as many to warm up (default 20000); a tenth of it streams
  --only WORDS  comma-separated, of: ${kinds.join(", ")}
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      serve: { type: "string" },
      calls: { type: "string", default: "20000" },
      only: { type: "string", default: kinds.join() },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) process.stdout.write(usage);
  else if (values.serve) serve(values.serve as Kind);
  else {
    const only = kinds.filter((kind) => values.only.split(",").includes(kind));
    for (const kind of only) await measure(kind, Number(values.calls));
  }
}

await main();
