import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createGuardedFetcher, type FetchStreamOptions } from "./fetcher.ts";

const fetcher = createGuardedFetcher({ allowPrivate: true });
const mib = 1024 * 1024;

let server: Server;
let handle: RequestListener;
let closed: PromiseWithResolvers<void>;
let url: string;

beforeEach(async () => {
  closed = Promise.withResolvers();
  server = createServer((request, response) => {
    response.on("close", () => closed.resolve());
    handle(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/film`;
});

afterEach(() => {
  server.close();
  server.closeAllConnections();
});

type Chunks = AsyncIterable<Uint8Array>;

function stream<T>(
  sink: (chunks: Chunks) => Promise<T>,
  options: Partial<FetchStreamOptions> = {},
): Promise<T> {
  return fetcher.fetchStream(url, { maxBytes: 64 * mib, timeoutMs: 20_000, ...options }, sink);
}

async function sizeOf(chunks: Chunks): Promise<number> {
  let bytes = 0;
  for await (const chunk of chunks) bytes += chunk.length;
  return bytes;
}

/** Sends without end, and reports when the reader has taken nothing for a while. */
function flood(onFull: (sentBytes: number) => void): RequestListener {
  return (_request, response) => {
    const piece = Buffer.alloc(64 * 1024);
    let sent = 0;
    let timer: NodeJS.Timeout | undefined;
    const send = () => {
      clearTimeout(timer);
      do sent += piece.length;
      while (response.write(piece));
      timer = setTimeout(onFull, 200, sent);
    };
    response.on("drain", send);
    response.on("close", () => clearTimeout(timer));
    send();
  };
}

it("hands over the body as it comes, after redirects, decoded", async () => {
  handle = (request, response) => {
    if (request.url === "/film") response.writeHead(302, { location: "/cut" }).end();
    else response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(mib)));
  };
  await expect(stream(sizeOf)).resolves.toBe(mib);
});

it("holds the sender back where the sink is slow", async () => {
  const full = Promise.withResolvers<number>();
  handle = flood(full.resolve);
  const sent = await stream(async (chunks) => {
    // Awaited inside the loop, because leaving the loop would end the body.
    for await (const _ of chunks) return await full.promise;
    return 0;
  });
  expect(sent).toBeLessThan(32 * mib);
  await closed.promise;
});

it.each([
  ["that reads nothing", async () => "enough"],
  [
    "that leaves early",
    async (chunks: Chunks) => {
      for await (const _ of chunks) break;
      return "enough";
    },
  ],
])("closes the connection of a sink %s", async (_, sink) => {
  handle = flood(() => {});
  await expect(stream(sink)).resolves.toBe("enough");
  await closed.promise;
});

it("lets the sink's own error out unchanged", async () => {
  handle = flood(() => {});
  const full = Object.assign(new Error("no space"), { code: "ENOSPC" });
  await expect(stream(() => Promise.reject(full))).rejects.toBe(full);
  await closed.promise;
});

it("ends with what is too much, also where less was announced", async () => {
  handle = flood(() => {});
  await expect(stream(sizeOf, { maxBytes: mib })).rejects.toMatchObject({ kind: "too_large" });
  await closed.promise;
});

it("is unreachable where the body breaks off, or falls silent", async () => {
  const breaking = Promise.withResolvers<void>();
  handle = (_request, response) => {
    response.writeHead(200, { "content-length": "10" }).write("half");
    breaking.promise.then(() => response.destroy());
  };
  const broken = stream(async (chunks) => {
    breaking.resolve();
    return sizeOf(chunks);
  });
  await expect(broken).rejects.toMatchObject({ kind: "unreachable" });

  handle = (_request, response) => response.write("half");
  const silent = stream(sizeOf, { idleTimeoutMs: 1_000 });
  const expected = { kind: "unreachable", detail: "UND_ERR_BODY_TIMEOUT" };
  await expect(silent).rejects.toMatchObject(expected);
});

it("settles after the sink does, when its time is over or its caller leaves", async () => {
  handle = (_request, response) => response.write("half");
  const ends: string[] = [];
  const slowly = async (chunks: Chunks) => {
    try {
      return await sizeOf(chunks);
    } finally {
      await new Promise((resolve) => setImmediate(resolve));
      ends.push("sink");
    }
  };
  await expect(stream(slowly, { timeoutMs: 2_000 })).rejects.toMatchObject({ kind: "timeout" });
  expect(ends).toEqual(["sink"]);

  const leaving = new AbortController();
  const reason = new Error("the caller left");
  const left = stream(
    (chunks) => {
      leaving.abort(reason);
      return slowly(chunks);
    },
    { signal: leaving.signal },
  );
  await expect(left).rejects.toBe(reason);
  expect(ends).toEqual(["sink", "sink"]);
});
