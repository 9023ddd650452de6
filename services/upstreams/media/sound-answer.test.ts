import { expect, test } from "vitest";
import { startScriptedMediaUpstream } from "../../../test/support/scripted-media-upstream.ts";
import { UnkeptSpeechError } from "./port.ts";
import { sampleMp3, sampleMp4 } from "./samples.fixture.ts";
import { createWorld, speechTask, upstreamAt } from "./world.fixture.ts";

const sound = sampleMp3(3);
const half = sound.subarray(0, 9_000);

/** Speaks at an upstream that says half of the audio and is then silent. */
async function speakHalf(times: { timeoutMs: bigint; idleTimeoutMs: bigint }, hears: boolean) {
  await using upstream = await startScriptedMediaUpstream("openai", {
    ...{ images: [], video: sampleMp4(), sound },
  });
  await using world = await createWorld();
  const over = Promise.withResolvers<void>();
  upstream.always("POST /audio/speech", {
    kind: "custom",
    async handle(_seen, answer) {
      answer.writeHead(200, { "content-type": "audio/mpeg" }).write(half);
      await over.promise;
      answer.end();
    },
  });
  const heard: Uint8Array[] = [];
  const hear = (piece: Uint8Array) => void heard.push(piece);
  const at = upstreamAt(upstream.baseUrl, "OPENAI", times);
  const error = await world.upstreams
    .speak(speechTask([at], hears ? { hear } : {}))
    .catch((cause) => cause);
  over.resolve();
  expect(Buffer.concat(heard)).toEqual(hears ? half : Buffer.alloc(0));
  return error;
}

const short = { timeoutMs: 2_000n, idleTimeoutMs: 10_000n };

test("what is heard for as long as an upstream may speak was spoken, and is not kept", async () => {
  expect(await speakHalf(short, true)).toBeInstanceOf(UnkeptSpeechError);
});

test("what no one hears in that time is unknown", async () => {
  expect(await speakHalf(short, false)).toMatchObject({ fault: "unknown" });
});

test("an upstream that falls silent is unknown, even where it was heard", async () => {
  const times = { timeoutMs: 20_000n, idleTimeoutMs: 1_000n };
  expect(await speakHalf(times, true)).toMatchObject({ fault: "unknown" });
});
