import { afterAll, beforeAll, expect, test } from "vitest";
import { type SseEvent, takeEvents } from "../e2e/sse.ts";
import { until } from "../support/until.ts";
import { ask, imageOf } from "./ask.ts";
import type { MeshCaller, MeshWorld } from "./world.ts";

/** Milliseconds until a job is taken over, or its end is seen, after any process was killed: a lease and its sweep. */
const heardWithinMs = 60_000;

/** The rules for a caller that follows a job, in a mesh with several replicas of media. */
export function followedJobs(worldOf: () => MeshWorld): void {
  let world: MeshWorld;
  let caller: MeshCaller;
  let usualLooks: number;
  beforeAll(async () => {
    world = worldOf();
    usualLooks = world.media.wording.runningLooks;
    caller = await world.caller({ credits: 1_000n });
  });
  afterAll(() => {
    world.media.wording.runningLooks = usualLooks;
  });

  /** Submits an image that the upstream works on until `finish`, and opens its events. */
  async function follow() {
    world.media.wording.runningLooks = Number.MAX_SAFE_INTEGER;
    const [gateway = ""] = world.gateways;
    const { json } = await ask(gateway, { caller, ...imageOf("followed") });
    const leave = new AbortController();
    const response = await fetch(`${gateway}/v1/jobs/${json.id}/events`, {
      headers: { authorization: `Bearer ${caller.key}` },
      signal: leave.signal,
    });
    const events: SseEvent[] = [];
    const ended = readInto(events, response);
    await until("the job to run", () => events.some(({ name }) => name === "job.running"), {
      withinMs: heardWithinMs,
    });
    return {
      jobId: json.id as string,
      events,
      finish() {
        world.media.wording.runningLooks = 0;
      },
      async end(): Promise<string[]> {
        // Otherwise a stream without an end would stop the test for its whole time, without a message.
        const late = setTimeout(
          () => leave.abort(new Error("the events did not end")),
          heardWithinMs,
        );
        await ended.finally(() => clearTimeout(late));
        return events.flatMap(({ name }) => name ?? []);
      },
    };
  }

  const inOrder = /^(job\.queued )?(job\.running )+job\.completed$/;

  test("hears its end although each replica of media was killed under the open stream", {
    timeout: 240_000,
  }, async () => {
    const followed = await follow();
    for (const media of world.of("media")) {
      await media.kill();
      await media.start();
    }
    followed.finish();
    const names = await followed.end();
    expect(names.join(" ")).toMatch(inOrder);
    expect(followed.events.at(-1)?.json).toMatchObject({
      id: followed.jobId,
      status: "completed",
      creditsCharged: 5,
    });
  });

  test("hears it too where for a while there was no media at all, and the job ended meanwhile", {
    timeout: 240_000,
  }, async () => {
    const followed = await follow();
    const replicas = world.of("media");
    await Promise.all(replicas.map((media) => media.kill()));
    const fetched = () => world.media.seen("GET /images/generations/*/files/*").length;
    const before = fetched();
    followed.finish();
    // The workers are alive, and need no media for this.
    await until("a worker to have fetched the image", () => fetched() > before, {
      withinMs: heardWithinMs,
    });
    await Promise.all(replicas.map((media) => media.start()));
    const names = await followed.end();
    expect(names.join(" ")).toMatch(inOrder);
  });
}

async function readInto(events: SseEvent[], response: Response): Promise<void> {
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const taken = takeEvents(text + chunk);
    events.push(...taken.events);
    text = taken.rest;
  }
}
