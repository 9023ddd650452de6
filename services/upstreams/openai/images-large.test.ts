import { expect, test } from "vitest";
import { startScriptedMediaUpstream } from "../../../test/support/scripted-media-upstream.ts";
import { sampleMp3, sampleMp4, samplePng } from "../media/samples.fixture.ts";
import { createWorld, imageRequest, upstreamAt } from "../media/world.fixture.ts";

test("images of an OpenAI upstream may be ten of the largest that a prompt can ask for", async () => {
  // Bytes behind an image's end are allowed.
  const large = Buffer.concat([await samplePng(64, 48), Buffer.alloc(12 * 1024 * 1024)]);
  const outputs = { images: [large], video: sampleMp4(), sound: sampleMp3() };
  await using upstream = await startScriptedMediaUpstream("openai", outputs);
  await using world = await createWorld();
  const request = { ...imageRequest, count: 10 };
  const patient = upstreamAt(upstream.baseUrl, "OPENAI", { timeoutMs: 50_000n });
  const { task } = world.task({ upstream: patient, request });
  expect(await world.upstreams.generate(task)).toHaveLength(10);
});
