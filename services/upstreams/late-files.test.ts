import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { systemClock } from "#kit/time/clock.ts";
import { promptly } from "../../test/support/promptly.ts";
import type { Behaviour } from "../../test/support/scripted-behaviours.ts";
import {
  redirectTo,
  startScriptedMediaUpstream,
} from "../../test/support/scripted-media-upstream.ts";
import { startComfy } from "../../test/support/upstreams/comfyui.ts";
import { falAnswers, falFailures, startFal } from "../../test/support/upstreams/fal.ts";
import { falCalls } from "./by-template/calls.fixture.ts";
import { comfyCalls } from "./comfyui/calls.fixture.ts";
import { generateTimes, generateTries } from "./media/limits.ts";
import { sampleMp3, sampleMp4 } from "./media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  speechTask,
  upstreamAt,
  upstreamKey,
  videoRequest,
} from "./media/world.fixture.ts";
import { type Member, members } from "./members.fixture.ts";

const status = (code: number): Behaviour => ({ kind: "status", status: code });

/** Bytes without a stated length that end in order, so HTTP shows no fault. */
function ended(bytes: Uint8Array, headers: Record<string, string> = {}): Behaviour {
  return {
    kind: "custom",
    handle(_seen, response) {
      response.writeHead(200, headers);
      response.write(bytes);
      response.end();
    },
  };
}

/** Fewer bytes than the head states, and then the end of the connection. */
function shorter(bytes: Uint8Array): Behaviour {
  return {
    kind: "custom",
    handle(_seen, response) {
      response.writeHead(200, { "content-length": bytes.length });
      response.write(bytes.subarray(0, bytes.length - 20), () => response.socket?.end());
    },
  };
}

async function made(member: Member) {
  await using world = await createWorld();
  const [output] = await world.upstreams.generate(world.task(member.asked).task);
  const stored = await world.stored(output?.blobKey ?? "");
  expect(Buffer.compare(stored, member.bytes)).toBe(0);
  expect(await world.storedKeys()).toHaveLength(1);
}

describe.each(members)("%s", (_, open) => {
  test("that comes late is had: 404 and 403 are asked again", async () => {
    await using member = await open();
    member.file.next(status(404), status(403), status(404));
    await made(member);
    expect(member.file.seen()).toHaveLength(4);
  });

  test.each([404, 403])("that stays %i has failed after 30 s", async (code) => {
    await using member = await open();
    await using world = await createWorld();
    member.file.always(status(code));
    const work = world.upstreams.generate(world.task(member.asked).task);
    await expect(work).rejects.toMatchObject({ fault: "failed" });
    const waits = world.pauses.slice(1 - member.file.seen().length);
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBe(generateTimes.lateFileMs);
    expect(generateTimes.lateFileMs).toBe(30_000);
    expect(await world.storedKeys()).toEqual([]);
  });

  test("that is shorter than its head says, or is cut, is asked for again", async () => {
    await using member = await open();
    member.file.next(shorter(member.bytes), { kind: "drop" }, status(503));
    await made(member);
    expect(member.file.seen()).toHaveLength(4);
  });

  test("that is empty is asked for again", async () => {
    await using member = await open();
    member.file.next(ended(Buffer.alloc(0)));
    await made(member);
  });

  test("whose task the upstream does not know for one look is made", async () => {
    await using member = await open();
    for (const look of member.looks) look.next(status(404));
    await made(member);
    for (const look of member.looks) expect(look.seen()).not.toHaveLength(0);
  });
});

const structured = members.filter(([name]) => !name.endsWith("music"));

test.each(structured)("%s that ends early, though cleanly, is asked for again", async (_, open) => {
  await using member = await open();
  member.file.next(ended(member.bytes.subarray(0, -15)), ended(member.bytes.subarray(0, 60)));
  await made(member);
  expect(member.file.seen()).toHaveLength(3);
});

// Another deployment sends the digest, so a later attempt may fetch the file that matches.
const undigested = structured.filter(([name]) => !name.startsWith("genmesh"));

test.each(undigested)("%s that is never whole has failed", async (_, open) => {
  await using member = await open();
  await using world = await createWorld();
  member.file.always(ended(member.bytes.subarray(0, -15)));
  const work = world.upstreams.generate(world.task(member.asked).task);
  await expect(work).rejects.toMatchObject({ fault: "failed" });
  expect(await world.storedKeys()).toEqual([]);
});

test.each(members)("%s whose compressed bytes break off is asked for again", async (_, open) => {
  await using member = await open();
  const packed = gzipSync(member.bytes);
  member.file.next(ended(packed.subarray(0, -12), { "content-encoding": "gzip" }));
  await made(member);
});

test.each(members)(
  "%s that is late is waited for no longer once the job is cancelled",
  async (_, open) => {
    await using member = await open();
    const left = new AbortController();
    const waits = Promise.withResolvers<void>();
    const clock = {
      ...systemClock,
      // Looks take no time, and the pause between two requests for the file is long.
      sleep(ms: number, signal?: AbortSignal) {
        if (member.file.seen().length === 0) return Promise.resolve();
        waits.resolve();
        return systemClock.sleep(60 * ms, signal);
      },
    };
    await using world = await createWorld({ clock });
    member.file.always(status(404));
    const { task } = world.task({ ...member.asked, signal: left.signal });
    const isOver = expect(world.upstreams.generate(task)).rejects.toThrow("cancelled");
    await Promise.race([waits.promise, isOver]);
    left.abort(new Error("cancelled"));
    await promptly(250, () => isOver);
    expect(member.file.seen()).toHaveLength(1);
  },
);

test("a film that lies elsewhere comes late there as well", async () => {
  const video = sampleMp4();
  const outputs = { images: [], video, sound: sampleMp3() };
  await using upstream = await startScriptedMediaUpstream("openai", outputs);
  await using elsewhere = await startScriptedMediaUpstream("openai", outputs);
  await using world = await createWorld();
  const location = `${elsewhere.baseUrl}/videos/video_1/content`;
  upstream.always("GET /videos/*/content", redirectTo(location));
  elsewhere.next("GET /videos/*/content", status(404), status(403));
  const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
  await expect(world.upstreams.generate(world.task(asked).task)).resolves.toHaveLength(1);
});

test("a speech of another deployment comes late", async () => {
  const outputs = { images: [], video: sampleMp4(), sound: sampleMp3() };
  await using upstream = await startScriptedMediaUpstream("genmesh", outputs);
  await using world = await createWorld();
  upstream.next("GET /speech/generations/*/files/*", status(404), ended(Buffer.alloc(0)));
  const spoken = await world.upstreams.speak(speechTask([upstreamAt(upstream.baseUrl, "GENMESH")]));
  expect(Buffer.compare(spoken.bytes, outputs.sound)).toBe(0);
});

test("a file that is refused for its content is not asked for again", async () => {
  const outputs = { images: [], video: sampleMp4(), sound: sampleMp3() };
  await using upstream = await startScriptedMediaUpstream("openai", outputs);
  await using world = await createWorld();
  const refused = { kind: "status", status: 403, code: "content_policy_violation" } as const;
  upstream.always("GET /videos/*/content", refused);
  const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
  const work = world.upstreams.generate(world.task(asked).task);
  await expect(work).rejects.toMatchObject({ fault: "content_policy" });
  expect(upstream.seen("GET /videos/*/content")).toHaveLength(1);
});

test("a ComfyUI that finds its task nowhere for one look is asked again", async () => {
  await using comfy = await startComfy();
  await using world = await createWorld();
  comfy.usual.pace = "advance";
  const upstream = upstreamAt(comfy.origin, "COMFYUI");
  const asked = { upstream, request: imageRequest, call: comfyCalls.image };
  comfy.next("job", status(404));
  comfy.next("queue", { kind: "json", body: { queue_running: [], queue_pending: [] } });
  const work = world.upstreams.generate(world.task(asked).task);
  await Promise.race([comfy.request("job", 2), work]);
  comfy.finish();
  await expect(work).resolves.toHaveLength(1);
  expect(comfy.runs).toHaveLength(1);
});

describe("a completed request of fal whose result is still in progress", () => {
  const start = () => startFal({ key: upstreamKey });
  const imageAt = ({ origin }: { origin: string }) => ({
    ...{ upstream: upstreamAt(origin, "FAL"), request: imageRequest, call: falCalls.image },
  });

  test("is asked for it again, and is left to a later attempt where that lasts", async () => {
    await using fal = await start();
    await using world = await createWorld();
    fal.next("result", falAnswers.tooEarly, falAnswers.tooEarly);
    const first = world.task(imageAt(fal));
    await expect(world.upstreams.generate(first.task)).resolves.toHaveLength(1);
    expect(fal.seen("result")).toHaveLength(3);
    fal.always("result", falAnswers.tooEarly);
    const resumed = { ...imageAt(fal), resumeId: first.resumeIds[0] };
    await expect(world.upstreams.generate(world.task(resumed).task)).rejects.toMatchObject({
      fault: "unknown",
    });
    expect(fal.seen("result")).toHaveLength(3 + generateTries.look);
    expect(fal.seen("submit")).toHaveLength(1);
  });

  test("says why it has failed once it is there", async () => {
    await using fal = await start();
    await using world = await createWorld();
    fal.plan({ failure: falFailures.refused });
    fal.next("result", falAnswers.tooEarly);
    const { task } = world.task(imageAt(fal));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "content_policy" });
  });
});
