import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, expect, test } from "vitest";
import { sampleMp3 } from "../../services/upstreams/media/samples.fixture.ts";
import { startMediaWorld } from "../e2e/media-world.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { until } from "../support/until.ts";

const { world, media, png, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
oneProcessOnly();

const dayMs = 86_400_000;
/** Longer than two looks of every sweep and worker. */
const workMs = 5_000;
const ask = { model: "scripted", input: "Hi" };
/** The usage that the scripted upstream reports: 10 tokens in, 5 out. */
const cost = 30;

let aheadMs = 0;
const setAhead = (ms: number) => {
  world.setClock(ms - aheadMs);
  aheadMs = ms;
};
afterEach(() => setAhead(0));

test.for([
  ["60 s ahead", 60_000],
  ["40 days ahead", 40 * dayMs],
  ["an hour back", -3_600_000],
] as const)(
  "a machine's clock that is set %s meanwhile ends no stream and no speech, and begins no job's generation again",
  async ([, jumpMs]) => {
    const caller = await world.caller({ credits: 10n });
    const [images, speech] = ["POST /images/generations", "POST /audio/speech"];
    media.requests.length = 0;
    media.next(images, {
      kind: "custom",
      async handle(_seen, answer) {
        await delay(workMs);
        answer.setHeader("content-type", "application/json");
        answer.end(JSON.stringify({ data: [{ b64_json: png.toString("base64") }] }));
      },
    });
    media.next(speech, {
      kind: "custom",
      async handle(_seen, answer) {
        await delay(workMs);
        answer.setHeader("content-type", "audio/mpeg");
        answer.end(sampleMp3());
      },
    });
    world.play({ kind: "ok", deltas: Array.from({ length: 10 }, () => "la "), deltaDelayMs: 500 });
    const stream = await caller.open("/responses", ask);
    await stream.until(({ name }) => name === "response.output_text.delta");
    const accepted = await caller.post("/images/generations", {
      ...{ model: "scripted-image", prompt: "a boat" },
    });
    expect(accepted.status).toBe(202);
    // A wallet of its own, because the charge of the stream is read from the other one.
    const speaker = await world.caller();
    const asked = speaker.post("/speech/generations", {
      ...{ model: "scripted-speech", input: "Hi, you.", voice: "alloy" },
    });
    await until("both generations", () => {
      return media.seen(images).length > 0 && media.seen(speech).length > 0;
    });

    setAhead(jumpMs);
    const events = await stream.rest();
    expect(events.at(-2)?.name).toBe("response.completed");
    expect((await asked).status).toBe(200);
    const path = `/images/generations/${accepted.json.jobId}`;
    const ended = await until(
      "the job's end",
      async () => {
        const { json } = await caller.get(path);
        return json.terminal && json;
      },
      { withinMs: 4 * workMs },
    );
    expect(ended).toMatchObject({ status: "completed", creditsCharged: 1 });
    expect([media.seen(images), media.seen(speech)]).toMatchObject([{ length: 1 }, { length: 1 }]);
    setAhead(0);
    const { available, reserved } = await caller.settled();
    expect([available, reserved]).toEqual([10_000_000 - cost, 0]);
  },
);

test("a clock that was 40 days ahead and comes back: the right month counts on", async () => {
  const caller = await world.caller();
  const spend = async () => {
    world.play();
    return (await caller.post("/responses", { ...ask, max_output_tokens: 100 })).status;
  };
  for (let i = 0; i < 3; i++) expect(await spend()).toBe(200);
  expect((await caller.settled()).monthSpend).toBe(3 * cost);
  setAhead(40 * dayMs);
  expect(await spend()).toBe(200);
  expect((await caller.settled()).monthSpend).toBe(cost);
  setAhead(0);
  expect((await caller.balance()).monthSpend).toBe(3 * cost);
  expect(await spend()).toBe(200);
  expect((await caller.settled()).monthSpend).toBe(4 * cost);
});
