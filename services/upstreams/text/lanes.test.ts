import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { type ManualClock, manualClock } from "#kit/time/clock.ts";
import { UpstreamShareSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  type Behaviour,
  closedBaseUrl,
  type SeenRequest,
} from "../../../test/support/scripted-upstream.ts";
import { testRequest } from "../../../test/support/text-requests.ts";
import { startUpstreamWorld, type UpstreamWorld } from "../../../test/support/upstream-world.ts";
import type { UpstreamRequest } from "./port.ts";

let clock: ManualClock;
let world: UpstreamWorld;
beforeEach(async () => {
  clock = manualClock();
  world = await startUpstreamWorld({ clock, secrets: (name) => name });
});
afterEach(() => world[Symbol.asyncDispose]());

/** Lanes of one level at the same server, one for each key. */
const keys = ["main", "main#2", "main#3", "main#4", "main#5"];
const lanesAt = (names: readonly string[], more: object = {}) =>
  names.map((name) => world.at("OPENAI", { name, apiKeyEnv: name, ...more }));

function ask(names = ["main", "main#2"], changes: Partial<UpstreamRequest> = {}) {
  const shares = names.map((upstream) => create(UpstreamShareSchema, { upstream, weight: 1 }));
  return testRequest("responses", lanesAt(names), { shares, stick: "s", ...changes });
}

const keyOf = ({ headers }: SeenRequest) => headers.authorization?.replace("Bearer ", "");
const asked = () => world.server.requests.map(keyOf);
/** The first lane of the conversation "s", and the one after it. */
const [home, other] = ["main#2", "main"] as const;

/** Plays this at one lane, and a good answer at all others. */
function playAt(lane: string, behaviour: Behaviour): void {
  world.server.script((seen) => (keyOf(seen) === lane ? behaviour : { kind: "ok" }));
}

const status = (code: number, more: object = {}): Behaviour => ({
  ...{ kind: "status", status: code },
  ...more,
});
const credit = "Your credit balance is too low to access the API.";

describe("a lane's answer leads to the next lane, and to its rest in seconds", () => {
  test.for<[string, Behaviour, number]>([
    ["429", status(429), 5],
    ["429 with a time", status(429, { headers: { "retry-after": "17" } }), 17],
    ["429 with too long a time", status(429, { headers: { "retry-after": "7200" } }), 60],
    ["529", status(529), 5],
    ["overloaded", { kind: "json", body: { error: { type: "overloaded_error" } } }, 5],
    ["402", status(402), 60],
    ["no quota", status(429, { code: "insufficient_quota" }), 60],
    ["no credit", status(400, { message: credit }), 60],
    ["no balance", status(403, { message: "User is locked. Reason: Exhausted balance." }), 60],
    ["401", status(401), 60],
    ["403", status(403), 60],
    ["404 of the model", status(404, { code: "model_not_found" }), 60],
  ])("%s", async ([, behaviour, seconds]) => {
    playAt(home, behaviour);
    expect((await world.json(ask())).answer.upstream).toBe(other);
    await clock.advance(seconds * 1_000 - 1);
    expect((await world.json(ask())).answer.upstream).toBe(other);
    expect(asked()).toEqual([home, other, other]);
    await clock.advance(1);
    playAt("none", behaviour);
    expect((await world.json(ask())).answer.upstream).toBe(home);
  });

  test.for<[string, Behaviour]>([
    ["a dropped connection", { kind: "drop" }],
    ["500", status(500)],
    ["502", status(502)],
    ["503", status(503)],
    ["504", status(504)],
    ["garbage", { kind: "garbage" }],
    ["an error in place of an answer", { kind: "json", body: { error: { message: "no" } } }],
  ])("%s, for 5 after three in a row", async ([, behaviour]) => {
    playAt(home, behaviour);
    for (let at = 0; at < 4; at++) {
      expect((await world.json(ask())).answer.upstream).toBe(other);
    }
    const times = asked().filter((key) => key === home).length;
    expect(times).toBe(3);
    await clock.advance(5_000);
    playAt("none", behaviour);
    expect((await world.json(ask())).answer.upstream).toBe(home);
  });

  test("a refused connection, likewise", async () => {
    const baseUrl = await closedBaseUrl();
    const [first, second] = lanesAt([home, other]);
    if (!first || !second) throw new Error("there are two lanes");
    const upstreams = [{ ...first, baseUrl }, second];
    for (let at = 0; at < 3; at++) await world.json({ ...ask(), upstreams });
    playAt("none", { kind: "ok" });
    expect((await world.json(ask())).answer.upstream).toBe(other);
  });

  test("an `error` event in place of the first one", async () => {
    playAt(home, { kind: "events", events: [{ type: "error", message: "no" }] });
    expect((await world.stream(ask())).answer.upstream).toBe(other);
  });
});

describe("a lane's answer is final, and it does not rest", () => {
  test.for<[string, Behaviour, keyof typeof ErrorReason]>([
    ["400", status(400), "INVALID_VALUE"],
    ["413", status(413, { code: "context_length_exceeded" }), "CONTEXT_LENGTH_EXCEEDED"],
    ["422", status(422), "INVALID_VALUE"],
    ["a long input", status(400, { code: "context_length_exceeded" }), "CONTEXT_LENGTH_EXCEEDED"],
    ["refused content", status(400, { code: "content_filter" }), "CONTENT_POLICY_VIOLATION"],
    ["404 of what the caller named", status(404), "MODEL_REQUEST_FAILED"],
  ])("%s", async ([, behaviour, reason]) => {
    playAt(home, behaviour);
    for (let at = 0; at < 12; at++) {
      expect(await world.reasonFrom(ask())).toBe(ErrorReason[reason]);
    }
    expect(new Set(asked())).toEqual(new Set([home]));
  });
});

describe("what may be paid for is never asked for again, but counts as a failure", () => {
  test.for<[string, Behaviour]>([
    ["an error that reports usage", errorWithUsage()],
    ["our time-out behind the sent body", { kind: "hang" }],
    ["a JSON answer that breaks within its body", { kind: "custom", handle: breakWithin }],
  ])("%s", async ([, behaviour]) => {
    playAt(home, behaviour);
    const times = { idleTimeoutMs: 50n, timeoutMs: 50n };
    for (let at = 0; at < 3; at++) {
      await world.refusalFrom({ ...ask(), upstreams: lanesAt([home, other], times) });
    }
    expect(asked()).toEqual([home, home, home]);
    expect((await world.json(ask())).answer.upstream).toBe(other);
  });

  test("a stream that breaks behind its first event", async () => {
    playAt(home, { kind: "ok", break: { how: "destroy", after: 1 } });
    for (let at = 0; at < 5; at++) {
      const { answer, events } = await world.stream(ask());
      expect([answer.upstream, events.at(-1)?.ending]).toEqual([home, "failed"]);
    }
    expect(asked()).not.toContain(other);
    expect((await world.json(ask())).answer.upstream).toBe(other);
  });
});

function breakWithin(_seen: unknown, response: import("node:http").ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json", "content-length": "999" });
  response.write('{"id":"r', () => response.destroy());
}

function errorWithUsage(): Behaviour {
  const usage = { input_tokens: 7, output_tokens: 1, total_tokens: 8 };
  return { kind: "json", status: 500, body: { error: { message: "no" }, usage } };
}

test("four lanes are asked at most, each once", async () => {
  world.server.script(status(500));
  await world.refusalFrom(ask(keys));
  expect(asked()).toHaveLength(4);
  expect(new Set(asked()).size).toBe(4);
});

describe("where all fail, the caller is told", () => {
  const play = (first: Behaviour, then: Behaviour) =>
    world.server.script((seen) => (keyOf(seen) === home ? first : then));
  const retryAfter = async () => (await world.refusalFrom(ask())).metadata.retry_after_ms;

  test("of a limit rather than of a fault, with its time", async () => {
    play(status(429, { headers: { "retry-after": "9" } }), status(500));
    expect(await retryAfter()).toBe("9000");
  });

  test("of the least time of two limits", async () => {
    const limit = (seconds: string) => status(429, { headers: { "retry-after": seconds } });
    play(limit("9"), limit("20"));
    expect(await retryAfter()).toBe("9000");
    await clock.advance(60_000);
    play(limit("20"), limit("9"));
    expect(await retryAfter()).toBe("9000");
  });

  test("the last error otherwise", async () => {
    play(status(429), status(400));
    expect(await world.reasonFrom(ask())).toBe(ErrorReason.INVALID_VALUE);
  });
});

test("where all lanes rest, one is asked nevertheless", async () => {
  world.server.script(status(429));
  await world.refusalFrom(ask());
  world.server.script({ kind: "ok" });
  expect((await world.json(ask())).answer.upstream).toBe(home);
});

describe("a request that is pinned to a lane", () => {
  const pinned = (rest: string) => {
    playAt(home, status(429, { headers: { "retry-after": rest } }));
    return { ...ask([home]), isPinned: true };
  };

  test("waits for the end of a short rest", async () => {
    const request = pinned("2");
    await world.json(ask());
    playAt("none", { kind: "ok" });
    const answer = world.json(request);
    expect(asked()).toEqual([home, other]);
    await clock.advance(2_000);
    expect((await answer).answer.upstream).toBe(home);
  });

  test("is refused with the time of a long one", async () => {
    const request = pinned("30");
    await world.json(ask());
    const refusal = await world.refusalFrom(request);
    expect(refusal.reason).toBe(ErrorReason.SERVICE_UNAVAILABLE);
    expect(refusal.metadata.retry_after_ms).toBe("30000");
    expect(asked()).toEqual([home, other]);
  });
});

test("each lane is asked by its own name of the model", async () => {
  const names = { main: "m-second", "main#2": "m-first" };
  const shares = Object.entries(names).map(([upstream, upstreamModel]) =>
    create(UpstreamShareSchema, { upstream, weight: 1, upstreamModel }),
  );
  playAt(home, status(429));
  await world.json(ask(undefined, { shares }));
  expect(world.server.requests.map(({ body }) => body.model)).toEqual(["m-first", "m-second"]);
});

test("lanes of one upstream share its places", async () => {
  const places = { maxConcurrent: 1, connectTimeoutMs: 100n };
  world.server.script({ kind: "ok", break: { how: "hang", after: 1 } });
  const leave = new AbortController();
  const first = await world.texts.send({
    ...ask([home], { stream: true, signal: leave.signal }),
    upstreams: lanesAt([home], places),
  });
  expect(first.upstream).toBe(home);
  const second = { ...ask([other]), upstreams: lanesAt([other], places) };
  expect(await world.reasonFrom(second)).toBe(ErrorReason.SERVICE_UNAVAILABLE);
  expect(asked()).toEqual([home]);
  leave.abort();
});
