import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { principalHeader } from "#kit/rpc/principal.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import {
  type JobBodySchema,
  JobKind,
  MediaService,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import {
  Operation,
  type ResponsesBodySchema,
  TextService,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import { ErrorInfoSchema } from "#proto/google/rpc/error_details_pb.ts";
import { type HostWorld, startHostWorld } from "../host/world.ts";

// Bodies with types mean what the same bodies as JSON mean.

type Responses = MessageInitShape<typeof ResponsesBodySchema>;
type Job = MessageInitShape<typeof JobBodySchema>;

let world: HostWorld;
let text: Client<typeof TextService>;
let media: Client<typeof MediaService>;
let headers: Record<string, string>;
beforeAll(async () => {
  world = await startHostWorld();
  const transport = createGrpcTransport({ baseUrl: `http://${world.mesh.grpcAddress}` });
  headers = { authorization: `Bearer ${world.mesh.adminToken}` };
  const { key } = await createClient(AuthService, transport).createAccount(
    { name: "typed" },
    { headers },
  );
  const { accountId = "", keyId = "" } = key ?? {};
  for (const unit of [Unit.USD_MICROS, Unit.CREDITS]) {
    const grant = { accountId, unit, amount: 1_000_000n, operationId: `${unit}` };
    await createClient(BillingService, transport).grant(grant, { headers });
  }
  headers[principalHeader] = `${accountId}/${keyId}`;
  text = createClient(TextService, transport);
  media = createClient(MediaService, transport);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const operation = Operation.RESPONSES;
const json = (body: object) => Buffer.from(JSON.stringify(body));
let keys = 0;

describe("responses", () => {
  test.for<[what: string, typed: Responses, body: JsonObject]>([
    [
      "all fields",
      {
        ...{ model: "chat-1", input: "Hi.", instructions: "Be brief.", maxOutputTokens: 9_000 },
        ...{ temperature: 0.5, topP: 1, stream: false, metadata: { a: "b" } },
        others: { parallel_tool_calls: false },
      },
      {
        ...{ model: "chat-1", input: "Hi.", instructions: "Be brief.", max_output_tokens: 9_000 },
        ...{ temperature: 0.5, top_p: 1, stream: false, metadata: { a: "b" } },
        parallel_tool_calls: false,
      },
    ],
    [
      "messages",
      { model: "chat-1", others: { input: [{ role: "user", content: "Hi." }] } },
      { model: "chat-1", input: [{ role: "user", content: "Hi." }] },
    ],
  ])("%s: the JSON is a repeat of it", async ([, responses, body]) => {
    const idempotencyKey = `typed-${keys++}`;
    const first = await text.generate({ operation, responses, idempotencyKey }, { headers });
    const repeat = await text.generate(
      { operation, body: json(body), idempotencyKey },
      { headers },
    );
    expect([first.replayed, repeat.replayed]).toEqual([false, true]);
    expect(JSON.parse(Buffer.from(first.body).toString())).toMatchObject({ status: "completed" });
    expect(repeat.body).toEqual(first.body);
  });

  test("a stream", async () => {
    const responses = { model: "chat-1", input: "Hi.", stream: true };
    let events = "";
    for await (const { part } of text.streamGenerate({ operation, responses }, { headers })) {
      if (part.case === "events") events += Buffer.from(part.value).toString();
    }
    expect(events).toMatch(/event: response\.created\n/);
    expect(events).toMatch(/event: response\.completed\n/);
  });

  test.for<[param: string, typed: Responses, body: JsonObject]>([
    ["model", { input: "Hi." }, { input: "Hi." }],
    ["model", { model: "", input: "Hi." }, { model: "", input: "Hi." }],
    ["input", { model: "chat-1" }, { model: "chat-1" }],
    [
      "max_output_tokens",
      { model: "chat-1", input: "Hi.", maxOutputTokens: 0 },
      { model: "chat-1", input: "Hi.", max_output_tokens: 0 },
    ],
    [
      "input[0].content",
      { model: "chat-1", others: { input: [{ role: "user", content: 1 }] } },
      { model: "chat-1", input: [{ role: "user", content: 1 }] },
    ],
    [
      "stream",
      { model: "chat-1", input: "Hi.", stream: true },
      { model: "chat-1", input: "Hi.", stream: true },
    ],
  ])("a refusal at %s is that of the JSON", async ([param, responses, body]) => {
    const refusal = await infoOf(text.generate({ operation, responses }, { headers }));
    expect(refusal).toEqual(
      await infoOf(text.generate({ operation, body: json(body) }, { headers })),
    );
    expect(refusal?.metadata).toMatchObject({ param });
  });

  test.for<[what: string, request: MessageInitShape<typeof TextService.method.generate.input>]>([
    ["JSON too", { operation, body: json({}), responses: {} }],
    ["another operation", { operation: Operation.COMPACT, responses: {} }],
    [
      "a number without JSON",
      {
        operation,
        responses: {
          others: { fields: { a: { kind: { case: "numberValue", value: Infinity } } } },
        },
      } as never,
    ],
  ])("%s is refused", async ([, request]) => {
    expect(await infoOf(text.generate(request, { headers }))).toMatchObject({
      reason: "INVALID_ARGUMENT",
      metadata: { field: "responses" },
    });
  });

  test("a field that is set twice is refused", async () => {
    const responses = { model: "chat-1", others: { model: "chat-1" } };
    expect(await infoOf(text.generate({ operation, responses }, { headers }))).toMatchObject({
      reason: "INVALID_VALUE",
      metadata: { param: "model" },
    });
  });
});

describe("jobs", () => {
  const image = { model: "image-1", prompt: "A fox." };
  test.for<[what: string, kind: JobKind, typed: Job, body: JsonObject]>([
    [
      "an image",
      JobKind.IMAGE,
      { ...image, aspectRatio: "1:1", n: 1, metadata: { a: "b" } },
      { ...image, aspectRatio: "1:1", n: 1, metadata: { a: "b" } },
    ],
    [
      "music",
      JobKind.MUSIC,
      { model: "music-1", title: "A", others: { mode: "instrumental" } },
      { model: "music-1", title: "A", mode: "instrumental" },
    ],
  ])("%s: the JSON is a repeat of it", async ([, kind, job, body]) => {
    const idempotencyKey = `typed-${keys++}`;
    const first = await media.submitJob({ kind, job, idempotencyKey }, { headers });
    const asJson = { kind, body: json(body), idempotencyKey };
    const repeat = await media.submitJob(asJson, { headers });
    expect([first.replayed, repeat.replayed]).toEqual([false, true]);
    expect(repeat.job?.jobId).toBe(first.job?.jobId);
  });

  test.for<[param: string, kind: JobKind, typed: Job, body: JsonObject]>([
    ["prompt", JobKind.IMAGE, { model: "image-1" }, { model: "image-1" }],
    [
      "aspectRatio",
      JobKind.IMAGE,
      { ...image, aspectRatio: "9:8" },
      { ...image, aspectRatio: "9:8" },
    ],
    ["n", JobKind.IMAGE, { ...image, n: 11 }, { ...image, n: 11 }],
    ["seed", JobKind.IMAGE, { ...image, seed: -1 }, { ...image, seed: -1 }],
    [
      "webhookUrl",
      JobKind.IMAGE,
      { ...image, webhookUrl: "ftp://a" },
      { ...image, webhookUrl: "ftp://a" },
    ],
    ["mode", JobKind.MUSIC, { model: "music-1", title: "A" }, { model: "music-1", title: "A" }],
  ])("a refusal at %s is that of the JSON", async ([param, kind, job, body]) => {
    const refusal = await infoOf(media.submitJob({ kind, job }, { headers }));
    expect(refusal).toEqual(await infoOf(media.submitJob({ kind, body: json(body) }, { headers })));
    expect(refusal?.metadata).toMatchObject({ param });
  });

  test("JSON too is refused", async () => {
    const request = { kind: JobKind.IMAGE, body: json(image), job: image };
    expect(await infoOf(media.submitJob(request, { headers }))).toMatchObject({
      reason: "INVALID_ARGUMENT",
      metadata: { field: "job" },
    });
  });
});

test("a release that does not know the types refuses their requests", async () => {
  const calls = [
    text.generate({ operation }, { headers }),
    text.streamGenerate({ operation }, { headers })[Symbol.asyncIterator]().next(),
    media.submitJob({ kind: JobKind.IMAGE }, { headers }),
  ];
  for (const call of calls) expect(await infoOf(call)).toMatchObject({ reason: "INVALID_JSON" });
});

/** The reason, values and text of a refusal. */
async function infoOf(call: Promise<unknown>) {
  const error = await call.then(
    () => expect.unreachable("it was not refused"),
    (reason) => ConnectError.from(reason),
  );
  const [info] = error.findDetails(ErrorInfoSchema);
  return info && { reason: info.reason, metadata: info.metadata, message: error.rawMessage };
}
