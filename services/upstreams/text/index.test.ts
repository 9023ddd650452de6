import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  type Behaviour,
  closedBaseUrl,
  type ScriptedUpstream,
  startScriptedUpstream,
} from "../../../test/support/scripted-upstream.ts";
import { testRequest, testUpstream } from "../../../test/support/text-requests.ts";
import { startUpstreamWorld, type UpstreamWorld } from "../../../test/support/upstream-world.ts";
import type { UpstreamRequest } from "./port.ts";

let world: UpstreamWorld;
let server: UpstreamWorld["server"];
let at: UpstreamWorld["at"];
let json: UpstreamWorld["json"];
let stream: UpstreamWorld["stream"];
let refusalFrom: UpstreamWorld["refusalFrom"];
let reasonFrom: UpstreamWorld["reasonFrom"];

beforeEach(async () => {
  world = await startUpstreamWorld();
  ({ server, at, json, stream, refusalFrom, reasonFrom } = world);
});

afterEach(() => world[Symbol.asyncDispose]());

describe("when it cannot", () => {
  const statuses: [
    number,
    Partial<Extract<Behaviour, { kind: "status" }>>,
    keyof typeof ErrorReason,
  ][] = [
    [400, {}, "INVALID_VALUE"],
    [422, {}, "INVALID_VALUE"],
    [400, { code: "content_policy_violation" }, "CONTENT_POLICY_VIOLATION"],
    [401, {}, "MODEL_REQUEST_FAILED"],
    [402, {}, "MODEL_REQUEST_FAILED"],
    [403, {}, "MODEL_REQUEST_FAILED"],
    [404, {}, "MODEL_REQUEST_FAILED"],
    [429, {}, "MODEL_REQUEST_FAILED"],
    [500, {}, "MODEL_REQUEST_FAILED"],
    [503, {}, "MODEL_REQUEST_FAILED"],
    [307, { headers: { location: "http://example.com/" } }, "MODEL_REQUEST_FAILED"],
  ];
  test.each(statuses)("upstream's %i %j is %s, in our words", async (status, more, reason) => {
    server.script({ kind: "status", status, ...more });
    for (const isStream of [false, true]) {
      const request = testRequest("responses", [at("OPENAI")], { stream: isStream });
      const refusal = await refusalFrom(request);
      expect(refusal.reason).toBe(ErrorReason[reason]);
      expect(refusal.message).not.toContain("SECRET");
    }
  });

  test("garbage is a failed request: HTML, no JSON, JSON that is no answer, an early end", async () => {
    const bodies: Behaviour[] = [
      { kind: "garbage" },
      { kind: "garbage", contentType: "text/html" },
      { kind: "garbage", body: "[1,2]" },
      { kind: "garbage", body: '{"object":"list"}' },
      { kind: "garbage", body: '{"status":"in_progress","output":[]}' },
      { kind: "garbage", body: "", contentType: "text/event-stream" },
      { kind: "garbage", body: "data: oops\n\n", contentType: "text/event-stream" },
    ];
    for (const behaviour of bodies) {
      server.script(behaviour);
      for (const operation of ["responses", "chat"] as const) {
        for (const isStream of [false, true]) {
          const request = testRequest(operation, [at("OPENAI")], { stream: isStream });
          expect(await reasonFrom(request)).toBe(ErrorReason.MODEL_REQUEST_FAILED);
        }
      }
    }
  });

  test("time: to connect, to the head, between bytes, in all", async () => {
    // Longer than the test may take, so that neither time can replace the other.
    const long = { timeoutMs: 120_000n, idleTimeoutMs: 120_000n };
    const hanging = { kind: "hang" } as const;
    server.script(hanging);
    const isLate = async (request: UpstreamRequest) =>
      expect(await reasonFrom(request)).toBe(ErrorReason.UPSTREAM_TIMEOUT);
    const slow = at("OPENAI", { ...long, timeoutMs: 60n });
    await isLate(testRequest("responses", [slow]));
    const silent = at("OPENAI", { ...long, idleTimeoutMs: 60n });
    await isLate(testRequest("responses", [silent], { stream: true }));

    server.script({ kind: "ok", break: { how: "hang", after: 2 } });
    // The head must come within these times too.
    for (const time of [{ idleTimeoutMs: 1_000n }, { timeoutMs: 1_500n }]) {
      const { events, data } = await stream(
        testRequest("responses", [at("OPENAI", { ...long, ...time })]),
      );
      expect(events.at(-1)?.ending).toBe("failed");
      expect(data.at(-1).response.error.code).toBe("upstream_timeout");
    }
  });

  test.each([
    { how: "destroy", after: 2 },
    { how: "end", after: 2 },
    { how: "garbage", after: 2 },
    { how: "error", after: 2 },
    { how: "failed", after: 2 },
  ] as const)("a stream that breaks ($how) ends with one failure", async (broken) => {
    server.script({ kind: "ok", break: broken });
    for (const [operation, protocol] of [
      ["responses", "OPENAI"],
      ["chat", "OPENAI"],
      ["chat", "CHAT_COMPLETIONS"],
    ] as const) {
      const { events, wire } = await stream(testRequest(operation, [at(protocol)]));
      expect(events.filter((event) => event.ending)).toEqual([events.at(-1)]);
      expect(events.at(-1)?.ending).toBe("failed");
      expect(events.map((event) => event.text).join("")).toBe("Hello from");
      expect(wire).not.toContain("SECRET");
    }
  });

  test("operations that the protocol, or the server, lacks", async () => {
    const incapable = ErrorReason.MODEL_NOT_RESPONSES_CAPABLE;
    const old = at("CHAT_COMPLETIONS");
    expect(await reasonFrom(testRequest("responses", [old]))).toBe(incapable);
    expect(await reasonFrom(testRequest("compact", [old]))).toBe(incapable);
    expect(server.requests).toHaveLength(0);
    for (const status of [404, 405, 501]) {
      server.script({ kind: "status", status });
      expect(await reasonFrom(testRequest("compact", [at("OPENAI")]))).toBe(incapable);
    }
    server.script({ kind: "status", status: 404, code: "model_not_found" });
    expect(await reasonFrom(testRequest("compact", [at("OPENAI")]))).toBe(
      ErrorReason.MODEL_REQUEST_FAILED,
    );
  });
});

describe("fallback", () => {
  let second: ScriptedUpstream;

  beforeEach(async () => {
    second = await startScriptedUpstream();
  });
  afterEach(() => second.close());

  const pair = (first: Upstream = at("OPENAI", { name: "first" })) => [
    first,
    testUpstream("OPENAI", { baseUrl: second.baseUrl, name: "second" }),
  ];

  test.each([
    ["429", { kind: "status", status: 429 }],
    ["500", { kind: "status", status: 500 }],
    ["503", { kind: "status", status: 503 }],
    ["401", { kind: "status", status: 401 }],
    ["402", { kind: "status", status: 402 }],
    ["403", { kind: "status", status: 403 }],
    ["404 of the model", { kind: "status", status: 404, code: "model_not_found" }],
    ["529", { kind: "status", status: 529 }],
    ["garbage", { kind: "garbage" }],
    ["a dropped connection", { kind: "drop" }],
    ["a stream cut before its first event", { kind: "custom", handle: cutAfterHead }],
  ] as [string, Behaviour][])("%s: the next one answers", async (_name, behaviour) => {
    server.script(behaviour);
    const { answer } = await stream(testRequest("responses", pair()));
    expect(answer.upstream).toBe("second");
    expect(server.requests).toHaveLength(1);
  });

  test("a refused connection: the next one answers", async () => {
    const dead = testUpstream("OPENAI", { baseUrl: await closedBaseUrl() });
    expect((await json(testRequest("responses", pair(dead)))).answer.upstream).toBe("second");
  });

  test.each([
    ["400", { kind: "status", status: 400 }],
    ["404 of what the caller named", { kind: "status", status: 404 }],
  ] as [string, Behaviour][])("%s: no other is asked", async (_name, behaviour) => {
    server.script(behaviour);
    await refusalFrom(testRequest("responses", pair()));
    expect(second.requests).toHaveLength(0);
  });

  test("after the first event there is no way back", async () => {
    server.script({ kind: "ok", break: { how: "destroy", after: 1 } });
    const { answer, events } = await stream(testRequest("responses", pair()));
    expect(answer.upstream).toBe("first");
    expect(events.at(-1)?.ending).toBe("failed");
    expect(second.requests).toHaveLength(0);
  });

  test("the last failure is the answer; one that lacks the operation is passed over", async () => {
    server.script({ kind: "status", status: 503 });
    second.script({ kind: "status", status: 400 });
    expect(await reasonFrom(testRequest("responses", pair()))).toBe(ErrorReason.INVALID_VALUE);
    second.script({ kind: "ok" });
    const [, good] = pair();
    const upstreams = [at("CHAT_COMPLETIONS"), good as Upstream];
    expect((await json(testRequest("responses", upstreams))).answer.upstream).toBe("second");
  });
});

function cutAfterHead(_seen: unknown, response: import("node:http").ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(": hello\n\n", () => response.destroy());
}
