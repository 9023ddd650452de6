import { diag } from "@opentelemetry/api";
import { afterAll, describe, expect, test } from "vitest";
import { attributeNames, type SpanKind, spanRules } from "#kit/telemetry/schema.ts";
import { type SeenSpan, startCollector, traceOf } from "../support/otlp.ts";
import { until } from "../support/until.ts";
import { ended, startMediaWorld, submit } from "./media-world.ts";
import { oneProcessOnly, ownWorldOnly } from "./world.ts";

/** Texts of a request that no telemetry may have. */
const told = {
  prompt: "a secret meeting of three herons",
  host: "caller-named-host.example",
  requestId: "caller-made-request-id",
  idempotencyKey: "caller-made-idempotency-key",
  agent: "caller-made-agent",
};
const headers = { "x-request-id": told.requestId, "user-agent": told.agent };
const sampledBefore = `00-${"a1".repeat(16)}-${"b2".repeat(8)}-01`;

const collector = await startCollector();
const env = {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_BSP_SCHEDULE_DELAY: "20",
  OTEL_METRIC_EXPORT_INTERVAL: "200",
  OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
};
const { world, media: _media, png: _png, ...rest } = await startMediaWorld({ env });
afterAll(() => rest[Symbol.asyncDispose]());
afterAll(() => collector[Symbol.asyncDispose]());
ownWorldOnly();
const caller = await world.caller({ credits: 100n });

const kinds: Record<number, SpanKind> = {
  1: "internal",
  2: "server",
  3: "client",
  4: "producer",
  5: "consumer",
};

type Tree = { [name: string]: Tree };

/** Names below a span. One that occurs several times is listed once. Look-ups of keys depend on the cache. */
function below(parentId: string, spans: readonly SeenSpan[]): Tree {
  const tree: Tree = {};
  for (const span of spans.filter((one) => one.parentId === parentId)) {
    if (span.name.endsWith("/LookUpKey")) continue;
    const name = `${kinds[span.kind]} ${span.name}`;
    tree[name] = { ...tree[name], ...below(span.spanId, spans) };
  }
  return tree;
}

/** From a span up to the request. */
function wayUp(span: SeenSpan, spans: readonly SeenSpan[]): SeenSpan[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentId);
  return [span, ...(parent ? wayUp(parent, spans) : [])];
}

const rpc = (method: string, inside: Tree): Tree => ({
  [`client genmesh.${method}`]: { [`server genmesh.${method}`]: inside },
});
const transaction = { "client transaction": {} };

let asked = 0;

async function streamAnAnswer() {
  collector.spans.length = 0;
  const input = [
    {
      role: "user",
      content: [
        { type: "input_text", text: told.prompt },
        { type: "input_image", image_url: `https://${told.host}/private/path.png` },
      ],
    },
  ];
  const stream = await caller.open(
    "/responses",
    { model: "scripted", input, max_output_tokens: 100 },
    {
      headers: { ...headers, traceparent: sampledBefore },
      idempotencyKey: `${told.idempotencyKey}-${++asked}`,
    },
  );
  const events = await stream.rest();
  expect(events.at(-1)?.data).toBe("[DONE]");
  const [first = expect.unreachable()] = events;
  const { id } = first.json.response;
  const isLast = ({ name }: SeenSpan) => name === "chat scripted";
  return { ...(await traceOf("/v1/responses", isLast, collector)), answered: stream.headers, id };
}

async function makeAnImage() {
  collector.spans.length = 0;
  const body = { model: "scripted-image", prompt: told.prompt, size: "64x64" };
  const job = await ended(caller, await submit(caller, "images", body, { headers }));
  const isLast = ({ name }: SeenSpan) => name === "run image job";
  return { ...(await traceOf("/v1/images/generations", isLast, collector)), job };
}

describe("one process", () => {
  oneProcessOnly();

  test("a streamed answer is one trace, from the edge to the upstream and the books", async () => {
    const { root, spans, answered, id } = await streamAnAnswer();
    expect(below("", spans)).toEqual({
      "server POST /v1/responses": {
        ...transaction,
        "client chat scripted": { "client POST": {} },
      },
    });
    expect(root.attributes).toEqual({
      "http.request.method": "POST",
      "http.route": "/v1/responses",
      "http.response.status_code": 200,
      "url.scheme": "http",
      "genmesh.request.id": answered.get("x-request-id"),
      "genmesh.account.id": caller.accountId,
    });
    const inference = spans.find(({ name }) => name === "chat scripted");
    expect(inference?.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "main",
      "gen_ai.request.model": "scripted",
      "gen_ai.request.stream": true,
      "gen_ai.response.time_to_first_chunk": expect.any(Number),
      "gen_ai.usage.input_tokens": 10,
      "gen_ai.usage.output_tokens": 5,
      "gen_ai.response.id": id,
      "gen_ai.response.model": "up-model",
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.request.max_tokens": 100,
      "genmesh.request.id": answered.get("x-request-id"),
    });
    expect(spans.filter(({ failed }) => failed)).toEqual([]);
    expect(spans.every(({ startedAt, endedAt }) => startedAt <= endedAt)).toBe(true);
    expect(spans.every(({ service }) => service === "genmesh")).toBe(true);
  });

  test("an image is one trace, through the queue to the worker's last write", async () => {
    const { root, spans, job } = await makeAnImage();
    expect(root.attributes["genmesh.job.id"]).toBe(job.id);
    expect(below("", spans)).toEqual({
      "server POST /v1/images/generations": rpc("media.v1.MediaService/SubmitJob", {
        ...transaction,
        "producer send jobs-image": { "consumer process jobs-image": {} },
        "internal run image job": {
          ...transaction,
          "client generate_content scripted-image": {
            "client POST": {},
            "internal put blob": {},
            ...transaction,
          },
        },
      }),
    });
  });

  test("the log's lines of a request carry its trace", async () => {
    const { root } = await streamAnAnswer();
    const lines = world.log.map((line) => JSON.parse(line));
    const line = lines.findLast((one) => one.msg === "request" && one.route === "/v1/responses");
    expect(line).toMatchObject({ trace_id: root.traceId, span_id: root.spanId });
  });

  test("a span hears nothing after its end, for which the SDK would make an Error each time", async () => {
    const faults: string[] = [];
    // On a slow machine there is also a message that sending takes long.
    const hear = (said: string) => {
      if (/ended Span|on a span once/.test(said)) faults.push(said);
    };
    const quiet = () => {};
    diag.setLogger({ error: hear, warn: hear, info: quiet, debug: quiet, verbose: quiet });
    try {
      await streamAnAnswer();
      await makeAnImage();
      await caller.post("/responses", { model: "scripted", input: "Hi" });
    } finally {
      diag.disable();
    }
    expect(faults).toEqual([]);
  });

  test("a collector that fails is told once, and no request feels it", async () => {
    collector.status = 500;
    const body = { model: "scripted", input: "Hi" };
    for (let i = 0; i < 3; i++) expect((await caller.post("/responses", body)).status).toBe(200);
    const lost = () => world.log.filter((line) => line.includes("telemetry is lost"));
    await until("a word of the loss", () => lost().length > 0);
    collector.status = 200;
    expect((await caller.post("/responses", body)).status).toBe(200);
    await until("a word of the end", () =>
      world.log.some((line) => line.includes("telemetry is taken again")),
    );
    // One message for traces, one for metrics.
    expect(lost().length).toBeLessThanOrEqual(2);
    expect(lost().join("")).not.toContain("127.0.0.1");
  });
});

describe("any world", () => {
  test("every span goes back to the request that caused it", async () => {
    const { root, spans } = await makeAnImage();
    const stored = spans.find(({ name }) => name === "put blob") as SeenSpan;
    expect(wayUp(stored, spans).map(({ name }) => name)).toEqual([
      "put blob",
      "generate_content scripted-image",
      "run image job",
      "genmesh.media.v1.MediaService/SubmitJob",
      "genmesh.media.v1.MediaService/SubmitJob",
      "POST /v1/images/generations",
    ]);
    const roots = spans.map((span) => wayUp(span, spans).at(-1)?.spanId);
    expect(new Set(roots)).toEqual(new Set([root.spanId]));
    const written = spans.filter(({ attributes }) => attributes["db.system.name"]);
    const byWorker = written.filter((span) =>
      wayUp(span, spans).some(({ name }) => name === "run image job"),
    );
    expect(byWorker.length).toBeGreaterThan(1);
  });

  test("a stranger's trace is not ours to go on with", async () => {
    const { root } = await streamAnAnswer();
    expect(root.parentId).toBe("");
    expect(sampledBefore).not.toContain(root.traceId);
  });

  test("nothing that is told names what a caller said, and all of it is in the schema", async () => {
    await streamAnAnswer();
    await makeAnImage();
    await caller.get(`/images/generations/${told.requestId}/files/x?download=1&q=${told.host}`);
    await until("the last request", () =>
      collector.spans.some(({ attributes }) => attributes["http.response.status_code"] === 404),
    );
    await until("metrics", () => collector.metrics().length > 20);
    const everything = Buffer.concat(collector.bodies).toString("latin1");
    const logs = Buffer.concat(collector.logs).toString("latin1");
    for (const word of [...Object.values(told), caller.key, "up-key-5f2c9d"]) {
      expect(everything).not.toContain(word);
      // A line of the log has the caller's own id of its request.
      if (word !== told.requestId) expect(logs).not.toContain(word);
    }
    const rules = Object.values(spanRules);
    const known = new Set<string>(attributeNames);
    for (const span of collector.spans) {
      const names = Object.keys(span.attributes);
      expect(names.filter((name) => !known.has(name))).toEqual([]);
      const fits = rules.filter(
        ({ kind, name, attributes }) =>
          kind === kinds[span.kind] &&
          name.test(span.name) &&
          names.every((one) => (attributes as readonly string[]).includes(one)),
      );
      expect(fits.length, `${kinds[span.kind]} ${span.name} ${names}`).toBeGreaterThan(0);
    }
  });

  test("metrics have the conventions' names", async () => {
    await streamAnAnswer();
    await makeAnImage();
    const find = (name: string, attributes: object = {}) =>
      collector.metrics().find((one) => {
        const found = Object.entries(attributes).every(
          ([key, value]) => one.attributes[key] === value,
        );
        return one.name === name && found;
      });
    const request = await until("the request's metric", () =>
      find("http.server.request.duration", { "http.route": "/v1/responses" }),
    );
    expect(request).toMatchObject({
      unit: "s",
      attributes: { "http.request.method": "POST", "http.response.status_code": 200 },
    });
    expect(request.bucketCounts).toHaveLength(request.bounds.length + 1);
    expect(request.bucketCounts.reduce((sum, count) => sum + count, 0)).toBe(request.value);
    const method = "genmesh.media.v1.MediaService/SubmitJob";
    const call = await until("the call's metric", () =>
      find("rpc.server.call.duration", { "rpc.method": method }),
    );
    expect(call.attributes).toMatchObject({ "rpc.response.status_code": "ok" });
    const model = { "gen_ai.request.model": "scripted" };
    for (const name of ["duration", "time_to_first_chunk", "usage.output_tokens"]) {
      await until(name, () => find(`gen_ai.client.inference.${name}`, model));
    }
    const text = await (await fetch(new URL("/metrics", world.opsUrl))).text();
    expect(text).toContain("genmesh_http_request_duration_seconds_bucket");
  });
});
