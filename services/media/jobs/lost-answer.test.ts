import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import {
  LostAnswer,
  UpstreamProtocol,
  UpstreamSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { leaseMs, lostAnswerMs, maxAttempts } from "../limits.ts";
import { failureFor, type Job, type MediaKind } from "./job.ts";
import { accept, claim, fresh, now, stepped, win } from "./lifecycle.fixture.ts";
import { step } from "./lifecycle.ts";
import { answerLost, wasAnswerLost } from "./lost-answer.ts";

const { OPENAI, FAL, GENMESH, COMFYUI, BUILTIN } = UpstreamProtocol;
const sentTo = (kind: MediaKind, protocol: UpstreamProtocol, lostAnswer?: LostAnswer): Job => {
  const sent = stepped(fresh(), accept, claim(), { kind: "sending", fence: 1 });
  const said = lostAnswer === undefined ? {} : { lostAnswer };
  const upstreams = [create(UpstreamSchema, { name: "u", protocol, ...said })];
  return { ...sent, spec: { ...sent.spec, kind, upstreams } };
};
const { AGAIN, FAIL } = LostAnswer;

test.each([
  ["image", OPENAI, undefined, "again"],
  ["image", FAL, undefined, "again"],
  ["image", OPENAI, FAIL, "fail"],
  ["video", OPENAI, undefined, "fail"],
  ["music", FAL, undefined, "fail"],
  ["video", FAL, AGAIN, "again"],
  ["video", GENMESH, FAIL, "fail"],
  ["video", UpstreamProtocol.UNSPECIFIED, undefined, "fail"],
] as const)(
  "a claim waits for the lost worker, then decides: %s at %s with %s",
  (kind, protocol, lostAnswer, decision) => {
    const lost = sentTo(kind, protocol, lostAnswer);
    const leaseEnd = now + leaseMs;
    const waiting = stepped(lost, claim(leaseEnd));
    expect(waiting).toMatchObject({ state: "running", fence: 1, lease: { owner: "" } });
    expect(waiting.events.at(-1)?.name).toBe("unanswered");
    // The same with a worker or a sweeper first.
    expect(stepped(lost, { kind: "abandoned", now: leaseEnd })).toEqual(waiting);
    expect(step(lost, { kind: "abandoned", now: leaseEnd - 1 })).toBeUndefined();
    const decidedAt = leaseEnd + lostAnswerMs;
    expect(lostAnswerMs).toBeLessThan(120_000);
    expect(step(waiting, claim(decidedAt - 1))).toBeUndefined();
    // Until then its outputs count, and its worker has the job again when it is back.
    expect(stepped(waiting, win(1, decidedAt - 1)).state).toBe("settling");
    const beat = { kind: "heartbeat", fence: 1, owner: "w", now: decidedAt - 1 } as const;
    const back = stepped(waiting, beat);
    expect(back.lease).toEqual({ owner: "w", until: decidedAt - 1 + leaseMs, counted: true });
    expect(stepped(back, claim(decidedAt - 1 + leaseMs)).events.at(-1)?.name).toBe("unanswered");
    // A job that is first looked at after all of that is decided at once.
    for (const job of [lost, waiting]) {
      const decided = stepped(job, claim(decidedAt));
      if (decision === "again") {
        expect(decided).toMatchObject({ state: "running", fence: 2, attempts: 2 });
        expect(decided.events.at(-1)?.name).toBe("asked_again");
        expect(step(job, { kind: "abandoned", now: decidedAt })).toBeUndefined();
      } else {
        expect(decided).toMatchObject({ state: "failing", failure: answerLost() });
        expect(wasAnswerLost(decided)).toBe(true);
        expect(step(job, { kind: "abandoned", now: decidedAt })).toEqual(decided);
      }
    }
    const named = { kind: "resumable", fence: 1, resumeId: "task" } as const;
    expect(stepped(lost, named, claim(leaseEnd)).fence).toBe(2);
  },
);

test.each([GENMESH, COMFYUI, BUILTIN])(
  "a claim asks again at once where that is safe: %s",
  (protocol) => {
    const again = stepped(sentTo("video", protocol), claim(now + leaseMs));
    expect(again).toMatchObject({ state: "running", fence: 2 });
    expect(again.events.at(-1)?.name).toBe("asked_again");
  },
);

test("a lost answer is asked for three times at most, handed back ones counted", () => {
  let job = sentTo("image", OPENAI);
  let at = now;
  for (let attempt = 2; attempt <= 3; attempt++) {
    job = stepped(job, { kind: "hand-back", fence: job.fence, now: at });
    expect(job).toMatchObject({ state: "running", attempts: attempt - 1 });
    job = stepped(job, claim(++at));
    expect(job).toMatchObject({ attempts: attempt, fence: attempt });
  }
  job = stepped(job, { kind: "hand-back", fence: job.fence, now: at });
  expect(stepped(job, claim(at + 1))).toMatchObject({
    state: "failing",
    failure: { reason: ErrorReason.GENERATION_FAILED },
  });
  expect(stepped(job, { kind: "abandoned", now: at }).failure).toEqual(answerLost());
  const once = sentTo("image", OPENAI, FAIL);
  expect(stepped(once, { kind: "hand-back", fence: 1, now }).failure).toEqual(answerLost());
});

test.each([
  [OPENAI, answerLost()],
  [COMFYUI, failureFor(ErrorReason.GENERATION_FAILED)],
] as const)("a third lost attempt needs no worker to fail: %s", (protocol, failure) => {
  const third = { ...sentTo("image", protocol), attempts: maxAttempts };
  const over = now + leaseMs + lostAnswerMs;
  expect(stepped(third, { kind: "abandoned", now: over })).toMatchObject({
    state: "failing",
    failure,
  });
  expect(stepped(third, claim(over)).failure).toEqual(failure);
});
