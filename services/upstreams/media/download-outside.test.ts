import { expect, test } from "vitest";
import { heldBack } from "../../../test/support/held-back.ts";
import {
  bytesAnswer,
  redirectTo,
  startScriptedMediaUpstream,
} from "../../../test/support/scripted-media-upstream.ts";
import { sampleMp3, sampleMp4 } from "./samples.fixture.ts";
import { createWorld, upstreamAt, videoRequest } from "./world.fixture.ts";

const video = sampleMp4({ width: 1280, height: 720, frameBytes: 400_000 });
const start = () => startScriptedMediaUpstream("openai", { images: [], video, sound: sampleMp3() });
const contentRoute = "GET /videos/*/content";
const madeRoute = "GET /made/*";

/** An upstream whose videos are at another place, and that place. */
async function twoPlaces() {
  const upstream = await start();
  const elsewhere = await start();
  upstream.always(contentRoute, redirectTo(`${elsewhere.baseUrl}/made/video_1`));
  const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
  return {
    elsewhere,
    asked,
    async [Symbol.asyncDispose]() {
      await upstream[Symbol.asyncDispose]();
      await elsewhere[Symbol.asyncDispose]();
    },
  };
}

test("a video that lies elsewhere goes into the store as it comes", async () => {
  await using places = await twoPlaces();
  await using world = await createWorld();
  const late = heldBack(video);
  places.elsewhere.always(madeRoute, late.answer);
  const { store } = world.task(places.asked).task;
  const slow = world.task({ ...places.asked, store: late.begunLate(store) });
  const [output] = await world.upstreams.generate(slow.task);
  expect(output?.sizeBytes).toBe(video.length);
  expect(await late.sentBytes).toBeLessThan(video.length / 2);
});

test("what breaks off elsewhere is fetched again from its start", async () => {
  await using places = await twoPlaces();
  await using world = await createWorld();
  places.elsewhere.next(
    madeRoute,
    bytesAnswer(video, "video/mp4", { cutAfter: 300_000 }),
    bytesAnswer(video, "video/mp4"),
  );
  const [output] = await world.upstreams.generate(world.task(places.asked).task);
  const stored = await world.stored(output?.blobKey ?? "");
  expect(Buffer.compare(stored, video)).toBe(0);
});

test("an abort ends a download from elsewhere, and leaves nothing", async () => {
  await using places = await twoPlaces();
  await using world = await createWorld();
  places.elsewhere.always(madeRoute, bytesAnswer(video, "video/mp4", { hangAfter: 300_000 }));
  const controller = new AbortController();
  const { task } = world.task({ ...places.asked, signal: controller.signal });
  const work = world.upstreams.generate(task);
  const seen = await places.elsewhere.request(1);
  const reason = new Error("handed back");
  controller.abort(reason);
  await expect(work).rejects.toBe(reason);
  await seen.over;
  expect(seen.aborted).toBe(true);
  expect(await world.storedKeys()).toEqual([]);
});
