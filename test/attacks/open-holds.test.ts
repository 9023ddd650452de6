import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, expect, test } from "vitest";
import { HoldKind, OperationSchema, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type Caller, refusalOf } from "../e2e/caller.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const many = 1_000;
const batch = 250;

/** Fills the wallet with open holds. The returned function ends one. */
async function fill({ accountId }: Caller, unit: Unit, kind: HoldKind) {
  const holdIds = Array.from({ length: many }, (_, i) => `attack_${unit}_${i}`);
  for (let from = 0; from < many; from += batch) {
    const operations = holdIds.slice(from, from + batch).map((holdId) => {
      const checkTime = timestampFromMs(world.now() + 3_600_000);
      const value = { accountId, unit, holdId, amount: 1n, kind, keyId: "k", ref: "r", checkTime };
      return create(OperationSchema, { operation: { case: "reserve", value } });
    });
    const { outcomes } = await world.admin.billing.apply({ operations });
    expect(outcomes.every(({ outcome }) => outcome.case === "reserve")).toBe(true);
  }
  return () => world.admin.billing.release({ accountId, unit, holdId: holdIds[0] ?? "" });
}

test.for([
  ["/responses", { model: "scripted", input: "Hi" }],
  ["/responses", { model: "scripted", input: "Hi", stream: true }],
  ["/responses/compact", { model: "scripted", input: "Hi" }],
  ["/chat/completions", { model: "legacy", messages: [{ role: "user", content: "Hi" }] }],
  ["/speech/generations", { model: "speech-1", voice: "alloy", input: "Hello there." }],
  ["/images/generations", { model: "image-1", prompt: "A pier" }],
  ["/videos/generations", { model: "svc-video-1-5", prompt: "A pier" }],
  ["/music/generations", { model: "music-1", mode: "instrumental", title: "Pier" }],
] as const)(
  "%s beside 1,000 open holds says how many there are, and when to come back",
  async ([path, body]) => {
    const payer = await world.caller({ credits: 10_000n });
    world.play();
    const isJob = /^.(images|videos|music)/.test(path);
    const unit = isJob ? Unit.CREDITS : Unit.USD_MICROS;
    const end = await fill(payer, unit, isJob ? HoldKind.JOB : HoldKind.TEXT);
    const ask = () => payer.post(path, body, { idempotencyKey: "one" });
    for (let i = 0; i < 2; i++) {
      const refused = await ask();
      expect(refusalOf(refused)).toBe("429 rate_limit_error too_many_open_requests null");
      expect(refused.json.error.message).toContain("1000");
      expect(refused.headers.get("retry-after")).toBe(isJob ? "60" : "5");
    }
    expect(world.upstream.requests).toHaveLength(0);
    // Refused requests leave no trace. Once a hold has ended, the same key is a new request.
    await end();
    const taken = await ask();
    expect(taken.status).toBe(isJob ? 202 : 200);
    expect(taken.headers.get("idempotency-replayed")).toBeNull();
  },
);
