import { afterAll, expect, test } from "vitest";
import { ended, startMediaWorld, submit } from "../e2e/media-world.ts";
import { ownWorldOnly } from "../e2e/world.ts";
import { promptly } from "../support/promptly.ts";
import { until } from "../support/until.ts";

const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const film = { model: "text-only", prompt: "waves", seconds: 6, resolution: "480p" };
/** A video of the built-in renderer. */
const rendered = { model: "svcalt-video-1-4", prompt: "waves", seconds: 5, resolution: "480p" };
/** Far above the time of either video on a busy machine. Far below the 30 minutes of a video at an upstream that hangs. */
const soonMs = 100_000;

test("films that an upstream never ends hold up no other account's, there or elsewhere", {
  timeout: 240_000,
}, async () => {
  const [hog, other] = [
    await world.caller({ credits: 1_000n }),
    await world.caller({ credits: 1_000n }),
  ];
  const begun: string[] = [];
  media.always("POST /videos", {
    kind: "custom",
    handle({ raw }, answer) {
      const id = `video_${raw.includes("for ever") ? "hung" : "fine"}_${begun.length}`;
      begun.push(id);
      answer.setHeader("content-type", "application/json");
      answer.end(JSON.stringify({ id, object: "video", status: "queued", progress: 0 }));
    },
  });
  media.always("GET /videos/*", {
    kind: "custom",
    handle({ path }, answer) {
      const id = path.split("/").at(-1) ?? "";
      const status = id.includes("hung") ? "in_progress" : "completed";
      answer.setHeader("content-type", "application/json");
      answer.end(JSON.stringify({ id, object: "video", status, progress: 1 }));
    },
  });
  // More than there are workers, and more than one account may have at one upstream.
  for (let i = 0; i < 60; i++) await submit(hog, "videos", { ...film, prompt: "for ever" });
  await until("as many to hang as there are workers", () => begun.length >= 4, {
    withinMs: 60_000,
  });

  await promptly(soonMs, async () => {
    const theirs = await Promise.all([rendered, film].map((body) => submit(other, "videos", body)));
    for (const job of theirs) {
      expect(await ended(other, job)).toMatchObject({ status: "completed" });
    }
  });
  const isHung = (id: string) => id.includes("hung");
  await until("the share of one account", () => begun.filter(isHung).length >= 48, {
    withinMs: 60_000,
  });
  // After another look of every worker the account still has no further place.
  for (let i = 0; i < 2; i++) {
    expect(await ended(other, await submit(other, "videos", film))).toMatchObject({
      status: "completed",
    });
  }
  expect(begun.filter(isHung)).toHaveLength(48);
});
