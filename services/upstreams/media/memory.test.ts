import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "#kit/time/clock.ts";
import {
  type ScriptedMediaUpstream,
  startScriptedMediaUpstream,
} from "../../../test/support/scripted-media-upstream.ts";
import { until } from "../../../test/support/until.ts";
import { generateLimits } from "./limits.ts";
import type { GenerationTask } from "./port.ts";
import { sampleMp3, sampleMp4, samplePng } from "./samples.fixture.ts";
import { createWorld, imageRequest, reference, upstreamAt } from "./world.fixture.ts";

type World = Awaited<ReturnType<typeof createWorld>>;

let png: Buffer;
let upstream: ScriptedMediaUpstream;
let world: World;
let giveUp: AbortController;
beforeEach(async () => {
  png = await samplePng(64, 48);
  const outputs = { images: [png], video: sampleMp4(), sound: sampleMp3() };
  upstream = await startScriptedMediaUpstream("openai", outputs);
  // Waiting for memory follows the clock.
  world = await createWorld({ clock: systemClock });
  giveUp = new AbortController();
});
afterEach(async () => {
  giveUp.abort(new Error("the test is over"));
  await upstream[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

/** More than enough to fill all memory, if one account's share were not bounded. */
const many = 32;
/** Sooner than the end of any step that hangs. */
const soonMs = 30_000;

function generate(accountId: string, asked: Partial<GenerationTask> = {}) {
  const place = upstreamAt(upstream.baseUrl, "OPENAI", {
    timeoutMs: 60_000n,
    idleTimeoutMs: 60_000n,
  });
  const { task } = world.task({ upstream: place, request: imageRequest, accountId, ...asked });
  return world.upstreams.generate(task);
}

function hang(accountId: string, asked: Partial<GenerationTask> = {}): void {
  const { signal } = giveUp;
  for (let at = 0; at < many; at++) generate(accountId, { ...asked, signal }).catch(() => {});
}

describe("the memory that jobs of images have is shared:", () => {
  test("answers of one account that never end leave another account room for its own", async () => {
    const bytes = generateLimits.imageInAnswerBytes;
    let begun = 0;
    upstream.always("POST /images/generations", {
      kind: "custom",
      handle(_seen, answer) {
        answer.writeHead(200, { "content-type": "application/json", "content-length": bytes });
        // Called for the part that is read.
        answer.write(Buffer.alloc(1024), () => begun++);
      },
    });
    hang("hostile");
    await until("all to be answered", () => begun === many, { withinMs: 30_000 });
    upstream.always("POST /images/generations", undefined);
    const outputs = await generate("other", { signal: AbortSignal.timeout(soonMs) });
    expect(outputs).toMatchObject([{ width: 64, height: 48 }]);
  });

  test("references of one account in requests that never end leave another account's room", async () => {
    upstream.always("POST /images/edits", { kind: "hang" });
    hang("hostile", { references: [{ ...reference(png), sizeBytes: generateLimits.imageBytes }] });
    const { places } = generateLimits.referencesInMemory.each;
    const most = places / generateLimits.imageBytes;
    const sent = () => upstream.seen("POST /images/edits").length;
    await until("its share to be used", () => sent() === most, { withinMs: 30_000 });
    upstream.always("POST /images/edits", undefined);
    const references = [{ ...reference(png), sizeBytes: generateLimits.imageBytes }];
    const signal = AbortSignal.timeout(soonMs);
    expect(await generate("other", { references, signal })).toMatchObject([{ width: 64 }]);
    // No further request of the first account was sent meanwhile.
    expect(sent()).toBe(most + 1);
  });
});
