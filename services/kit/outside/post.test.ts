import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createGuardedFetcher } from "./fetcher.ts";

const fetcher = createGuardedFetcher({ allowPrivate: true });
const message = { body: '{"a":"é"}', headers: { "content-type": "application/json", "x-a": "b" } };
const options = { ...message, maxAnswerBytes: 1_000 };

let server: Server;
let handle: RequestListener;
let requests: number;
let base: string;

beforeEach(async () => {
  requests = 0;
  server = createServer((request, response) => {
    requests++;
    handle(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  server.close();
  server.closeAllConnections();
});

it("sends the body and these headers, and answers the status, of any kind", async () => {
  for (const status of [200, 204, 404, 410, 500]) {
    const seen = Promise.withResolvers<unknown>();
    handle = async (request, response) => {
      const { method, url, headers } = request;
      seen.resolve({ method, url, headers, body: await text(request) });
      response.writeHead(status).end(status === 204 ? undefined : "thanks");
    };
    expect(await fetcher.post(`${base}/a?b=c#d`, options)).toBe(status);
    expect(await seen.promise).toEqual({
      ...{ method: "POST", url: "/a?b=c", body: message.body },
      headers: {
        ...message.headers,
        ...{ host: base.slice("http://".length), connection: "close", "user-agent": "genmesh" },
        "content-length": String(Buffer.byteLength(message.body)),
      },
    });
  }
});

it("does not follow a redirect", async () => {
  handle = (_, response) => response.writeHead(307, { location: `${base}/elsewhere` }).end();
  expect(await fetcher.post(base, options)).toBe(307);
  expect(requests).toBe(1);
});

it("takes the status of an answer that is too long, and leaves the rest", async () => {
  const closed = Promise.withResolvers<void>();
  handle = (_, response) => {
    response.on("close", closed.resolve);
    const more = () => {
      while (!response.destroyed && response.write("x".repeat(65_536)));
    };
    response.writeHead(200).on("drain", more);
    more();
  };
  expect(await fetcher.post(base, options)).toBe(200);
  await closed.promise;
});

it("takes the status of an answer whose body never ends in time", async () => {
  handle = (_, response) => void response.writeHead(202).write("x");
  expect(await fetcher.post(base, { ...options, timeoutMs: 2_000 })).toBe(202);
});

it("gives up a host that does not answer", async () => {
  handle = () => {};
  const late = fetcher.post(base, { ...options, timeoutMs: 100 });
  await expect(late).rejects.toMatchObject({ kind: "timeout" });
});

it("rejects with the signal's reason", async () => {
  const controller = new AbortController();
  handle = () => controller.abort(new Error("enough"));
  const sent = fetcher.post(base, { ...options, signal: controller.signal });
  await expect(sent).rejects.toThrow("enough");
});

it("posts to public addresses alone", async () => {
  const guarded = createGuardedFetcher({ allowPrivate: false });
  for (const url of [
    base,
    base.replace("127.0.0.1", "localhost"),
    "http://[::1]/",
    "http://10.0.0.1/",
  ]) {
    await expect(guarded.post(url, options)).rejects.toMatchObject({ kind: "unsafe" });
  }
  await expect(guarded.post("ftp://example.com/", options)).rejects.toMatchObject({
    kind: "invalid_url",
  });
  expect(requests).toBe(0);
});
