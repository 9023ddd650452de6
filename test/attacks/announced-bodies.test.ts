import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRaw } from "../edge/raw.ts";
import { type EdgeWorld, startEdge } from "../edge/world.ts";
import { until } from "../support/until.ts";

const mib = 1024 * 1024;
let edge: EdgeWorld;
/** The number of requests that run and get no answer. */
let underWay = 0;
beforeAll(async () => {
  edge = await startEdge({
    settings: { maxBytesInFlight: 64 * mib + 1_024 },
    text: {
      async generate({ body }, { signal }: HandlerContext) {
        if (Buffer.from(body).includes("stay")) {
          underWay++;
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        }
        return { body: Buffer.from("{}") };
      },
    },
  });
});
afterAll(() => edge[Symbol.asyncDispose]());

const head = (key: string, framing: string) =>
  `POST /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
  `Content-Type: application/json\r\n${framing}\r\n\r\n`;

test("a body that was announced and does not come gives way to one of another account", async () => {
  using half = await openRaw(edge.port);
  half.send(`${head(await edge.makeAccount(), `Content-Length: ${64 * mib}`)}{`);
  await until("its room to be taken", async () =>
    /^genmesh_http_body_bytes [1-9]/m.test(await edge.metrics.text()),
  );
  // Larger than the bodies that have a room of their own.
  const whole = JSON.stringify({ input: "x".repeat(mib / 8) });
  const other = { authorization: `Bearer ${await edge.makeAccount()}` };
  let answered: number | undefined;
  void edge.post("/v1/responses", whole, other).then(({ status }) => {
    answered = status;
  });
  await until("its answer", async () => {
    await edge.clock.advance(250);
    return answered;
  });
  expect(answered).toBe(200);
  expect(await half.until((text) => text.includes("\r\n\r\n"))).toMatch(/^HTTP\/1.1 503 /);
});

test("a small body never waits behind a large one that was only announced", async () => {
  using half = await openRaw(edge.port);
  half.send(`${head(edge.key, `Content-Length: ${64 * mib}`)}{`);
  const key = await edge.makeAccount();
  for (const one of [edge.key, key]) {
    const { status } = await edge.post("/v1/responses", "{}", { authorization: `Bearer ${one}` });
    expect(status).toBe(200);
  }
});

test("a body that was said to have no end holds what came of it, once it has ended", async () => {
  using stack = new DisposableStack();
  const keys = [edge.key, await edge.makeAccount(), await edge.makeAccount()];
  for (const [index, key] of keys.entries()) {
    const raw = stack.use(await openRaw(edge.port));
    raw.send(`${head(key, "Transfer-Encoding: chunked")}4\r\nstay\r\n0\r\n\r\n`);
    await until("its answer to be under way", () => underWay === index + 1);
  }
});
