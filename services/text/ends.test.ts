import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import {
  chunk,
  events,
  type Feed,
  feed,
  jsonAnswer,
  type ScriptedUpstreams,
  scriptedUpstreams,
  someUsage,
} from "../../test/contract/usage.upstream.ts";
import {
  createTextWorld,
  funds,
  principal,
  type TextWorld,
} from "../../test/contract/usage.world.ts";
import type { ReportedUsage } from "../upstreams/text/port.ts";

// A dollar for a million input tokens (ten cents for cached ones), ten dollars for output: 10 × 1 + 10 × 0.1 + 30 × 10.
const someCost = 311n;
const ask = { model: "chat-1", input: "Tell me of the sea." };
const asStream = { ...ask, stream: true };

let world: TextWorld;
let upstreams: ScriptedUpstreams;
let current: Feed;

beforeEach(async () => {
  upstreams = scriptedUpstreams(async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  });
  world = await createTextWorld({ upstreams });
});
afterEach(() => world[Symbol.asyncDispose]());

/** Waits for work that goes on after the caller's answer. */
const settled = async () => {
  await vi.waitFor(async () => expect((await world.wallet()).reserved).toBe(0n), 40_000);
  return (await world.wallet()).spent;
};
const spent = async () => (await world.wallet()).spent;
const counted = async () =>
  /genmesh_text_tokens_total\{direction="output",source="estimated"\} (\d+)/.exec(
    await world.metrics.text(),
  )?.[1];

describe("upstream reported usage", () => {
  test("of a JSON answer: charged before it is given", async () => {
    upstreams.script = async () => jsonAnswer();
    const { json } = await world.ask("RESPONSES", ask);
    expect(json).toMatchObject({ id: "resp_1", status: "completed" });
    expect(await world.wallet()).toEqual({
      reserved: 0n,
      spent: someCost,
      spendable: funds - someCost,
    });
  });
  test("of a stream: held while it runs, charged before the terminal event", async () => {
    const stream = world.stream("RESPONSES", asStream);
    expect(await stream.next()).toContain("response.created");
    // The hold: 256 + 16 for the request and its item, the bytes of the input, and 1,000 tokens of output at ten.
    expect((await world.wallet()).reserved).toBeGreaterThan(10_000n);
    current.push(events.delta("Hel"), events.delta("lo"));
    expect((await stream.next())?.match(/output_text.delta\n/g)).toHaveLength(2);
    current.push(events.end());
    const last = await stream.next();
    expect(last).toContain("event: response.completed");
    expect(last?.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: someCost });
    expect(await stream.next()).toBeUndefined();
  });
  test("of 0 stays 0", async () => {
    const usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };
    upstreams.script = async () => jsonAnswer({ usage });
    await world.ask("RESPONSES", ask);
    expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 0n });
  });
  test("above the bound: at most the hold", async () => {
    const usage = { inputTokens: 20, cachedInputTokens: 0, outputTokens: 9_000 };
    upstreams.script = async () => jsonAnswer({ usage });
    await world.ask("RESPONSES", ask);
    const cost = await spent();
    expect(cost).toBeGreaterThan(10_000n);
    expect(cost).toBeLessThan(11_000n);
  });
  test("of a stream that then failed: charged", async () => {
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    current.push(events.delta("Hel"), events.end({ ending: "failed" }));
    const rest = await stream.rest();
    expect(rest).toContain("response.failed");
    expect(rest).toContain("[DONE]");
    expect(await settled()).toBe(someCost);
  });
  test("before the caller left: charged", async () => {
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    const usage: ReportedUsage = someUsage;
    current.push({ ...events.delta("Hel"), usage });
    await stream.next();
    await stream[Symbol.asyncDispose]();
    expect(await settled()).toBe(someCost);
  });
});

describe("usage that cannot be believed", () => {
  test.each<[string, Partial<ReportedUsage>]>([
    ["negative", { inputTokens: -5 }],
    ["no integer", { outputTokens: 0.5 }],
    ["cached above input", { cachedInputTokens: 21 }],
    ["absurd", { outputTokens: 10_001 }],
  ])(
    "%s: what we counted is charged, the rest is free at once, and the operator is shown it",
    async (_n, wrong) => {
      const text = "one two three four five six seven eight nine ten";
      upstreams.script = async () => jsonAnswer({ text, usage: { ...someUsage, ...wrong } });
      const { json } = await world.ask("RESPONSES", ask);
      const { usage } = json as { usage: { input_tokens: number } };
      expect(usage).toMatchObject({ output_tokens: 10, estimated: true });
      const cost = BigInt(usage.input_tokens) + 100n;
      expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: cost });
      const { reviews } = await world.admin.text.listReviews({});
      const [review] = reviews;
      expect(review).toMatchObject({
        accountId: principal.accountId,
        model: "chat-1",
        chargedUsdMicros: cost,
      });
      expect(JSON.parse(review?.reportedUsage ?? "")).toEqual({ ...someUsage, ...wrong });
      const { holds } = await world.admin.billing.listHolds({ accountId: principal.accountId });
      expect(holds).toEqual([]);
    },
  );

  test("of a stream that failed: counted, too", async () => {
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    const usage = { ...someUsage, outputTokens: -1 };
    current.push(events.delta("one two three"), events.end({ ending: "failed", usage }));
    expect(await stream.rest()).toMatch(/response\.failed.*"output_tokens":3,.*"estimated":true/s);
    expect(await settled()).toBeGreaterThan(30n);
  });
});

describe("0, released", () => {
  test("refused by billing: nothing was sent, nothing is left", async () => {
    const poor = { ...principal, accountId: "acct_poor" };
    await expect(world.ask("RESPONSES", ask, { principal: poor, key: "k" })).rejects.toMatchObject({
      reason: ErrorReason.INSUFFICIENT_BALANCE,
    });
    const limited = { admission: { monthlyUsdMicrosLimit: 100n }, key: "k" };
    await expect(world.ask("RESPONSES", ask, limited)).rejects.toMatchObject({
      reason: ErrorReason.KEY_LIMIT_EXCEEDED,
    });
    expect(upstreams.sent).toHaveLength(0);
    // The idempotency key is free: the same request with another body is accepted.
    upstreams.script = async () => jsonAnswer();
    await world.ask("RESPONSES", { ...ask, input: "other" }, { key: "k" });
    expect(await spent()).toBe(someCost);
  });
  test("upstream refused before the first token", async () => {
    for (const reason of [ErrorReason.MODEL_REQUEST_FAILED, ErrorReason.INVALID_VALUE] as const) {
      upstreams.script = async () => refuse(reason);
      await expect(world.ask("RESPONSES", ask)).rejects.toMatchObject({ reason });
      await expect(world.stream("RESPONSES", asStream).next()).rejects.toMatchObject({ reason });
      expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 0n });
    }
  });
  test("an answer that is itself a failure", async () => {
    upstreams.script = async () => jsonAnswer({ ending: "failed", usage: undefined, text: "" });
    await expect(world.ask("RESPONSES", ask)).rejects.toMatchObject({
      reason: ErrorReason.MODEL_REQUEST_FAILED,
    });
    expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 0n });
  });
  test("the caller left before it was sent", async () => {
    const gone = new AbortController();
    const asked = world.ask("RESPONSES", ask, { signal: gone.signal });
    gone.abort();
    await expect(asked).rejects.toThrow();
    expect(await settled()).toBe(0n);
    expect(upstreams.sent).toHaveLength(0);
  });
  test("failed or cut after some output, without usage", async () => {
    const failing: ((feed: Feed) => void)[] = [
      (one) => one.push(events.end({ ending: "failed", usage: undefined })),
      (one) => one.end(),
      (one) => one.break(new Error("broken")),
    ];
    for (const fail of failing) {
      const stream = world.stream("RESPONSES", asStream);
      await stream.next();
      current.push(events.delta("Some words were said."));
      await stream.next();
      fail(current);
      const rest = await stream.rest();
      expect(rest).toContain("event: response.failed");
      expect(rest).toContain('"sequence_number":2');
      expect(rest).toContain("[DONE]");
      expect(await settled()).toBe(0n);
    }
  });
  test("a chat stream that was cut ends in an error, and never in [DONE]", async () => {
    upstreams.script = async ({ signal }) => {
      current = feed(signal);
      current.push(chunk({ choices: [{ index: 0, delta: { content: "Hel" } }] }, "Hel"));
      return current.answer;
    };
    const chat = { model: "chat-1", messages: [{ role: "user", content: "x" }], stream: true };
    const stream = world.stream("CHAT_COMPLETIONS", chat);
    await stream.next();
    current.end();
    const rest = await stream.rest();
    expect(rest).toMatch(/^data: \{"error":\{.*"model_request_failed".*\}\}\n\n$/);
    expect(await settled()).toBe(0n);
  });
});

describe("counted, where no usage came", () => {
  const text = "one two three four five six seven eight nine ten";
  test("completed and incomplete", async () => {
    for (const ending of ["completed", "incomplete"] as const) {
      upstreams.script = async () => jsonAnswer({ usage: undefined, text, ending });
      await world.ask("RESPONSES", ask);
    }
    expect(await counted()).toBe("20");
    // Twice ten tokens of output at ten, and some twenty of input.
    const cost = await spent();
    expect(cost).toBeGreaterThan(220n);
    expect(cost).toBeLessThan(280n);
  });
  test("the caller left: what was sent so far, and upstream is closed at once", async () => {
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    current.push(events.delta(text));
    await stream.next();
    const pulled = stream.next();
    const leaving = stream[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(current.isAborted).toBe(true), { timeout: 10_000, interval: 1 });
    await Promise.allSettled([leaving, pulled]);
    expect(await settled()).toBeGreaterThan(100n);
    // Ten by the count of genmesh. Another vocabulary may make a seventh more of it.
    expect(await counted()).toBe("12");
  });
  test("the caller left before any output: the input", async () => {
    const gone = new AbortController();
    const sent = Promise.withResolvers<void>();
    upstreams.script = ({ signal }) => {
      sent.resolve();
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    };
    const asked = world.ask("RESPONSES", ask, { signal: gone.signal });
    await sent.promise;
    gone.abort();
    await expect(asked).rejects.toThrow();
    const cost = await settled();
    expect(cost).toBeGreaterThan(5n);
    expect(cost).toBeLessThan(60n);
  });
});

describe("ready and slow", () => {
  test("a reader that stops holds the upstream back", async () => {
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    for (let n = 0; n < 10; n++) current.push(events.delta("x"));
    await stream.next();
    // A pull too many has no event that could be awaited. It would come within a few turns.
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(current.pulls).toBeLessThanOrEqual(2);
  });
  test("what fails unexpectedly leaks nothing, and costs nothing", async () => {
    upstreams.script = async () => {
      throw new Error("a secret of ours");
    };
    const error = await world.ask("RESPONSES", ask).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RefusalError);
    expect(error).toMatchObject({ reason: ErrorReason.INTERNAL_ERROR });
    expect((error as Error).message).not.toContain("secret");
    expect(await settled()).toBe(0n);
  });
  test("a process that stops ends a stream that said nothing without charge", async () => {
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    await world.text.drain(AbortSignal.abort());
    expect(await stream.rest()).toContain("response.failed");
    expect(await settled()).toBe(0n);
  });
  test("a process that stops ends its streams, which cost what they said, and says so", async () => {
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    current.push(events.delta("x"));
    await stream.next();
    await world.text.drain(AbortSignal.abort());
    expect(current.isAborted).toBe(true);
    expect(await stream.rest()).toMatch(/response\.failed.*"estimated":true/s);
    expect(await settled()).toBeGreaterThanOrEqual(10n);
    await expect(world.ask("RESPONSES", ask)).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
    });
  });
});

describe("opaque state in an answer", () => {
  const turn = (encrypted_content: string) => ({
    ...ask,
    input: [{ type: "reasoning", id: "rs_1", summary: [], encrypted_content }],
  });
  const other = { principal: { accountId: "acct_other", keyId: "key_other" } };

  test.each([false, true])(
    "goes back to its maker, and is refused to another account",
    async (stream) => {
      upstreams.script = async ({ signal }) => {
        if (!stream) return { ...jsonAnswer({ opaque: ["gAAAA"] }), upstream: "other" };
        current = feed(signal);
        current.push(events.begin(), events.end({ opaque: ["gAAAA"] }));
        return { ...current.answer, upstream: "other" };
      };
      await world.stream("RESPONSES", { ...ask, stream }).rest();
      upstreams.script = async () => jsonAnswer();
      await world.ask("RESPONSES", turn("gAAAA"));
      expect(upstreams.sent.at(-1)?.upstreams.map((one) => one.name)).toEqual(["other"]);
      expect(upstreams.sent.at(-1)?.body.input).toEqual(turn("gAAAA").input);
      await expect(world.ask("RESPONSES", turn("gAAAA"), other)).rejects.toMatchObject({
        reason: ErrorReason.INVALID_VALUE,
        param: "input[0].encrypted_content",
      });
    },
  );
});
