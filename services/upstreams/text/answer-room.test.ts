import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { noPlaceInTime } from "#kit/share/fair-share.ts";
import { answerLimits, httpLimits } from "#kit/upstream/limits.ts";
import { testRequest } from "../../../test/support/text-requests.ts";
import { startUpstreamWorld, type UpstreamWorld } from "../../../test/support/upstream-world.ts";
import { failureOf } from "./failure.ts";
import { embeddingBytes } from "./limits.ts";

let world: UpstreamWorld;
beforeEach(async () => {
  world = await startUpstreamWorld();
});
afterEach(() => world[Symbol.asyncDispose]());

const vectors = (count: number) =>
  JSON.stringify({
    data: [{ index: 0, embedding: Array.from({ length: count }, (_, at) => at / 3) }],
    usage: { prompt_tokens: 1, total_tokens: 1 },
  });
/** 400 KB. */
const large = vectors(20_000);

const answering = (bytes: string, hasLength: boolean) =>
  world.server.script({
    kind: "custom",
    handle(_seen, answer) {
      const length = hasLength ? { "content-length": Buffer.byteLength(bytes) } : {};
      answer.writeHead(200, { "content-type": "application/json", ...length });
      answer.write(bytes.slice(0, 10));
      answer.end(bytes.slice(10));
    },
  });

function embedding(reach: (bytes: number) => Promise<void>) {
  const fields = { input: "Hi" };
  return testRequest("embeddings", [world.at("OPENAI")], { fields, stream: false, reach });
}

test.each<[string, string, boolean, number[]]>([
  ["of usual length", vectors(10), true, []],
  ["of usual length, in chunks", vectors(10), false, []],
  ["that is large", large, true, [large.length]],
  ["that is large, in chunks", large, false, [embeddingBytes, answerLimits.jsonBytes]],
])("an answer %s asks for so much room", async (_, bytes, hasLength, asked) => {
  answering(bytes, hasLength);
  const reached: number[] = [];
  const { body } = await world.json(embedding(async (size) => void reached.push(size)));
  expect(body.data[0].embedding).toEqual(JSON.parse(bytes).data[0].embedding);
  expect(reached).toEqual(asked);
});

/** The kind of error that decides the request's end. Here the upstream has not failed: genmesh refuses its answer. */
async function kindOfRefusal(reach: () => Promise<void>) {
  const refusal = await world.refusalFrom(embedding(reach));
  expect(refusal).toBeInstanceOf(RefusalError);
  expect(refusal.reason).toBe(ErrorReason.MODEL_REQUEST_FAILED);
  return failureOf(refusal.cause)?.kind;
}

test("an answer that finds no room in time is one that we refuse", async () => {
  answering(large, true);
  expect(await kindOfRefusal(() => Promise.reject(noPlaceInTime()))).toBe("too_large");
});

test("so is one whose upstream gives up while it waits for room", async () => {
  const broken = Promise.withResolvers<void>();
  world.server.script({
    kind: "custom",
    async handle(_seen, answer) {
      answer.writeHead(200, { "content-type": "application/json", "content-length": 1_000_000 });
      answer.write("x".repeat(900_000));
      await delay(httpLimits.heldBackMs + 500);
      answer.destroy();
      broken.resolve();
    },
  });
  expect(await kindOfRefusal(() => broken.promise)).toBe("too_large");
});

test("one whose upstream breaks off by itself has failed there", async () => {
  world.server.script({
    kind: "custom",
    handle(_seen, answer) {
      answer.writeHead(200, { "content-type": "application/json", "content-length": 1_000_000 });
      answer.write("x".repeat(900_000), () => answer.destroy());
    },
  });
  expect(await kindOfRefusal(async () => {})).toBe("cut");
});
