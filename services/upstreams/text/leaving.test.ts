import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { heldBytes } from "../../../test/support/held-bytes.ts";
import { promptly } from "../../../test/support/promptly.ts";
import type { Behaviour } from "../../../test/support/scripted-upstream.ts";
import { testRequest, testUpstream } from "../../../test/support/text-requests.ts";
import { untilStill } from "../../../test/support/until.ts";
import { startUpstreamWorld, type UpstreamWorld } from "../../../test/support/upstream-world.ts";
import type { StreamAnswer } from "./port.ts";

let world: UpstreamWorld;
let server: UpstreamWorld["server"];
let texts: UpstreamWorld["texts"];
let at: UpstreamWorld["at"];
let json: UpstreamWorld["json"];
let stream: UpstreamWorld["stream"];
let reasonFrom: UpstreamWorld["reasonFrom"];

beforeEach(async () => {
  world = await startUpstreamWorld();
  ({ server, texts, at, json, stream, reasonFrom } = world);
});

afterEach(() => world[Symbol.asyncDispose]());

describe("the caller's leaving", () => {
  const leaveAt = async (behaviour: Behaviour, until: "sent" | "begun" | "stalled") => {
    server.script(behaviour);
    const caller = new AbortController();
    const request = testRequest("responses", [at("OPENAI")], {
      stream: true,
      signal: caller.signal,
    });
    const sent = texts.send(request);
    sent.catch(() => {});
    const seen = await server.request(server.requests.length + 1);
    const answer = until === "sent" ? undefined : ((await sent) as StreamAnswer);
    const batches = answer?.batches[Symbol.asyncIterator]();
    if (until === "begun") await batches?.next();
    await promptly(250, () => {
      caller.abort(new Error("the caller left"));
      return seen.over;
    });
    expect(seen.aborted).toBe(true);
    if (until === "sent") await expect(sent).rejects.toThrow("the caller left");
    if (until === "begun") {
      const rest = async () => {
        while (!(await batches?.next())?.done);
      };
      await expect(rest()).rejects.toThrow("the caller left");
    }
  };

  test("closes upstream at once: unanswered, within the stream, and while its caller reads nothing", async () => {
    await leaveAt({ kind: "hang" }, "sent");
    await leaveAt({ kind: "ok", break: { how: "hang", after: 1 } }, "begun");
    await leaveAt({ kind: "huge", events: 1e6, deltaBytes: 500 }, "stalled");
  });

  test("a reader that stops asking closes upstream too, however slow that is", async () => {
    const deltas = Array.from({ length: 100 }, () => "slow ");
    server.script({ kind: "ok", deltas, deltaDelayMs: 40 });
    const request = testRequest("responses", [at("OPENAI")], { stream: true });
    const answer = (await texts.send(request)) as StreamAnswer;
    for await (const _ of answer.batches) break;
    const seen = await server.request(1);
    await promptly(250, () => seen.over);
    expect(seen.aborted).toBe(true);
  });

  test("one that has left already sends nothing", async () => {
    const signal = AbortSignal.abort(new Error("gone"));
    const request = testRequest("responses", [at("OPENAI")], { signal });
    await expect(texts.send(request)).rejects.toThrow("gone");
    expect(server.requests).toHaveLength(0);
  });
});

test("a slow reader holds upstream back and memory stays flat", async () => {
  server.script({ kind: "huge", events: 200_000, deltaBytes: 500 });
  // The time is long enough for a busy machine. At a time-out, undici's parser grows for good by the 4 MB that a socket may bring at
  // once then.
  const upstream = at("OPENAI", { timeoutMs: 60_000n, idleTimeoutMs: 60_000n });
  const request = testRequest("responses", [upstream], { stream: true });
  const answer = (await texts.send(request)) as StreamAnswer;
  const seen = await server.request(1);
  const batches = answer.batches[Symbol.asyncIterator]();
  await batches.next();
  expect(await untilStill("upstream", () => seen.writtenBytes)).toBeLessThan(20e6);
  const atRest = heldBytes();
  for (let piece = 0; piece < 10; piece++) {
    for (let bytes = 0; bytes < 5e6; ) {
      const { value = [] } = await batches.next();
      expect(value).not.toHaveLength(0);
      for (const { frame } of value) bytes += frame.length;
    }
    expect(heldBytes() - atRest).toBeLessThan(1e6);
  }
  await batches.return?.();
});

describe("places", () => {
  test("a bound of requests in flight holds the next one until a stream has ended", async () => {
    const upstream = at("OPENAI", { maxConcurrent: 1 });
    server.script({ kind: "ok", deltaDelayMs: 20 });
    const request = testRequest("responses", [upstream]);
    await Promise.all([stream(request), stream(request), json(request)]);
    const [first, second, third] = server.requests;
    await Promise.all([first?.over, second?.over, third?.over]);
    expect(server.requests).toHaveLength(3);
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(60);
  });

  test("no place within the time to connect is no time-out of the upstream: it was never asked", async () => {
    const full = at("OPENAI", { maxConcurrent: 1, connectTimeoutMs: 1_000n });
    server.script({ kind: "hang" });
    const caller = new AbortController();
    const held = texts.send(testRequest("responses", [full], { signal: caller.signal }));
    held.catch(() => {});
    await server.request(1);
    const refusal = reasonFrom(testRequest("responses", [full]));
    expect(await refusal).toBe(ErrorReason.SERVICE_UNAVAILABLE);
    expect(server.requests).toHaveLength(1);
    const other = testUpstream("BUILTIN");
    const { answer } = await json(testRequest("responses", [full, other]));
    expect(answer.upstream).toBe("builtin");
    caller.abort();
  });
});
