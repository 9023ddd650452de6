import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Awaitable } from "#kit/base/awaitable.ts";
import { promptly } from "../../../test/support/promptly.ts";
import {
  closedBaseUrl,
  type ScriptedUpstream,
  startScriptedUpstream,
} from "../../../test/support/scripted-upstream.ts";
import { untilStill } from "../../../test/support/until.ts";
import { createHttpClient, type HttpClient, type HttpRequest } from "./client.ts";
import { UpstreamError } from "./errors.ts";

let upstream: ScriptedUpstream;
let client: HttpClient;

beforeEach(async () => {
  upstream = await startScriptedUpstream();
  client = createHttpClient();
});

afterEach(async () => {
  await client[Symbol.asyncDispose]();
  await upstream.close();
});

function post(changes: Partial<HttpRequest> & { stream?: boolean } = {}): HttpRequest {
  const { stream = false, ...rest } = changes;
  return {
    method: "POST",
    url: `${upstream.baseUrl}/responses`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", input: "hi", stream }),
    connectTimeoutMs: 2000,
    headTimeoutMs: 2000,
    idleTimeoutMs: 2000,
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    ...rest,
  };
}

/** The pool takes a connection back one turn of the event loop after its answer. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

async function failureOf(promise: Awaitable<unknown>): Promise<UpstreamError> {
  const error = await Promise.resolve(promise).then(
    () => undefined,
    (reason) => reason,
  );
  expect(error).toBeInstanceOf(UpstreamError);
  return error;
}

test("head and body come; the connection is used again", async () => {
  for (let i = 0; i < 3; i++) {
    const reply = await client.request(post());
    expect(reply.status).toBe(200);
    expect(reply.headers["content-type"]).toBe("application/json");
    expect(JSON.parse((await reply.body.whole(10_000)).toString()).object).toBe("response");
    await turn();
  }
  expect(upstream.requests.map((seen) => seen.connection)).toEqual([1, 1, 1]);
});

test("what must not be sent twice has a connection of its own, and is not tried again", async () => {
  await (await client.request(post())).body.whole(10_000);
  await turn();
  // On a kept connection this would be a break that calls for another try.
  upstream.next({ kind: "drop", reusedOnly: true });
  for (let i = 0; i < 2; i++) {
    await (await client.request(post({ once: true }))).body.whole(10_000);
    await turn();
  }
  expect(upstream.requests.map((seen) => seen.connection)).toEqual([1, 2, 3]);
  expect(upstream.requests.at(-1)?.headers.connection).toBe("close");

  upstream.next({ kind: "drop" });
  expect(await failureOf(client.request(post({ once: true })))).toMatchObject({
    kind: "unreachable",
  });
  expect(upstream.requests.length).toBe(4);
});

test("of an answer's headers only those come through that something is made of", async () => {
  const server = createServer((_request, response) => {
    response.writeHead(200, [
      ...["Content-Type", "application/json", "Set-Cookie", "a=b", "X-Internal-Host", "gpu-7"],
      ...["Retry-After", "3", "Retry-After", "4", "X-Genmesh-Ignored-Parameters", "seed"],
    ]);
    response.end("{}");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    const reply = await client.request(post({ url: `http://127.0.0.1:${port}/v1/responses` }));
    await reply.body.whole(10_000);
    const { "retry-after": retryAfter, ...headers } = reply.headers;
    expect(retryAfter).toMatch(/^3/);
    expect(headers).toEqual({
      "content-type": "application/json",
      "x-genmesh-ignored-parameters": "seed",
    });
  } finally {
    server.close();
  }
});

test("a kept-alive connection that was closed meanwhile is not the caller's trouble", async () => {
  await (await client.request(post())).body.whole(10_000);
  await turn();
  upstream.next({ kind: "drop", reusedOnly: true });
  const reply = await client.request(post());
  expect(reply.status).toBe(200);
  expect(upstream.requests.length).toBe(3);
});

test("one that breaks when its request had been read is the upstream's failure: it is not sent twice", async () => {
  await (await client.request(post())).body.whole(10_000);
  await turn();
  upstream.next({
    kind: "custom",
    async handle(_seen, answer) {
      await delay(1_200);
      answer.destroy();
    },
  });
  expect(await failureOf(client.request(post()))).toMatchObject({ kind: "unreachable" });
  expect(upstream.requests.map((seen) => seen.connection)).toEqual([1, 1]);
});

test("a new connection that breaks is not tried again", async () => {
  upstream.script({ kind: "drop" });
  expect(await failureOf(client.request(post()))).toMatchObject({ kind: "unreachable" });
  expect(upstream.requests.length).toBe(1);
});

test("refused, timed out before the head, idle, too long in all, cut, too large", async () => {
  const url = `${await closedBaseUrl()}/responses`;
  expect(await failureOf(client.request(post({ url })))).toMatchObject({
    kind: "unreachable",
    timedOut: false,
  });

  // Longer than the test takes, so that none of these fires instead of another.
  const long = { headTimeoutMs: 120_000, idleTimeoutMs: 120_000, timeoutMs: 120_000 };
  upstream.script({ kind: "hang" });
  for (const short of [{ headTimeoutMs: 50 }, { timeoutMs: 50 }]) {
    const late = client.request(post({ ...long, ...short }));
    expect((await failureOf(late)).kind).toBe("timeout");
  }

  upstream.script({ kind: "ok", break: { how: "hang", after: 1 } });
  for (const short of [{ idleTimeoutMs: 1_000 }, { timeoutMs: 1_500 }]) {
    const silent = await client.request(post({ ...long, ...short, stream: true }));
    expect((await failureOf(silent.body.whole(1e6))).kind).toBe("timeout");
  }

  upstream.script({ kind: "ok", break: { how: "destroy", after: 1 } });
  const cut = await client.request(post({ stream: true }));
  expect((await failureOf(cut.body.whole(1e6))).kind).toBe("cut");

  upstream.script({ kind: "ok" });
  const large = await client.request(post());
  expect((await failureOf(large.body.whole(100))).kind).toBe("too_large");
});

test("aborting closes the connection at once: before the head, within the body, unread", async () => {
  const cases = [
    { behaviour: { kind: "hang" } as const, hasHead: false },
    { behaviour: { kind: "ok", break: { how: "hang", after: 1 } } as const, hasHead: true },
    { behaviour: { kind: "huge", events: 1e6, deltaBytes: 1000 } as const, hasHead: true },
  ];
  for (const [i, { behaviour, hasHead }] of cases.entries()) {
    upstream.script(behaviour);
    const caller = new AbortController();
    const request = client.request(post({ stream: true, signal: caller.signal }));
    const seen = await upstream.request(i + 1);
    const reply = hasHead ? await request : undefined;
    await promptly(250, async () => {
      caller.abort(new Error("left"));
      if (reply) await expect(reply.body.whole(1e9)).rejects.toThrow("left");
      else await expect(request).rejects.toThrow("left");
      await seen.over;
    });
    expect(seen.aborted).toBe(true);
  }
});

test("a reader that stops holds the sender back, and may go on later than the idle time", async () => {
  upstream.script({ kind: "huge", events: 100_000, deltaBytes: 1000 });
  const idleTimeoutMs = 1_000;
  const reply = await client.request(post({ stream: true, idleTimeoutMs }));
  const seen = await upstream.request(1);
  await reply.body.next();
  // The size of the kernel buffers on both sides, not the 100 MB of the stream.
  expect(await untilStill("the sender", () => seen.writtenBytes)).toBeLessThan(20e6);
  // The test is about time itself.
  await delay(idleTimeoutMs);
  let bytes = 0;
  for (
    let chunk = await reply.body.next();
    chunk && bytes < 40e6;
    chunk = await reply.body.next()
  ) {
    bytes += chunk.length;
  }
  expect(bytes).toBeGreaterThanOrEqual(40e6);
  reply.body.close();
  await seen.over;
});

test("releasing a body keeps the connection where little is left, and closes it where more comes", async () => {
  const short = await client.request(post({ stream: true }));
  await short.body.next();
  short.body.release();
  await (await upstream.request(1)).over;
  await turn();
  await (await client.request(post())).body.whole(10_000);
  expect((await upstream.request(2)).connection).toBe(1);

  upstream.script({ kind: "huge", events: 1e6, deltaBytes: 1000 });
  const long = await client.request(post({ stream: true }));
  await long.body.next();
  long.body.release();
  const seen = await upstream.request(3);
  await seen.over;
  expect(seen.aborted).toBe(true);
});
