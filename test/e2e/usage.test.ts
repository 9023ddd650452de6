import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { type Caller, refusalOf } from "./caller.ts";
import { type Document, ended, startMediaWorld, submit, threeKeys } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const create = "POST /images/generations";
beforeEach(() => {
  if (!isOwnWorld) return;
  world.play();
  media.always(create, undefined);
});

const dayStart = () => Math.floor(world.now() / 86_400_000) * 86_400 - 86_400;

async function usageOf(caller: Caller, query: string): Promise<Document[]> {
  const buckets = [];
  for (let page = ""; ; ) {
    const { status, json, text } = await caller.get(
      `/usage?start_time=${dayStart()}&${query}${page}`,
    );
    if (status !== 200) throw new Error(text);
    buckets.push(...json.data);
    if (!json.has_more) return buckets;
    page = `&page=${json.next_page}`;
  }
}

async function pagesOf(caller: Caller, path: string): Promise<Document[]> {
  const all = [];
  for (let after = ""; ; ) {
    const { status, json, text } = await caller.get(`${path}${after}`);
    if (status !== 200) throw new Error(text);
    all.push(...json.data);
    if (!json.has_more) return all;
    after = `${path.includes("?") ? "&" : "?"}after=${json.nextCursor}`;
  }
}

const sum = (rows: readonly Document[], name: string): number =>
  rows.reduce((all, row) => all + row[name], 0);
const resultsOf = (buckets: readonly Document[]) => buckets.flatMap(({ results }) => results);

describe("one set of numbers", () => {
  test("usage, requests, entries, billing, CSV and the audit agree, for all that was asked for", async () => {
    const { first, second, all } = await threeKeys(world);
    const image = { model: "scripted-image", prompt: "a boat" };
    const chat = { model: "scripted", messages: [{ role: "user", content: "Hi" }] };
    const asks: ((caller: Caller) => Promise<unknown>)[] = [
      (caller) => caller.post("/responses", { model: "scripted", input: "Hi" }),
      (caller) => caller.stream("/responses", { model: "scripted", input: "Hi" }),
      (caller) => caller.post("/chat/completions", chat),
      (caller) => caller.stream("/chat/completions", chat),
      (caller) => caller.post("/responses", { model: "nowhere", input: "Hi" }),
      (caller) =>
        caller.post("/speech/generations", {
          ...{ model: "scripted-speech", input: "Hello", voice: "alloy" },
        }),
      async (caller) => ended(caller, await submit(caller, "images", image)),
      async (caller) => ended(caller, await submit(caller, "images", { ...image, n: 2 })),
    ];
    for (let round = 0; round < 3; round++) {
      await Promise.all(
        asks.map((ask, i) => ask((i + round) % 3 === 0 ? second : first).catch(() => undefined)),
      );
    }
    await first.settled();

    const { json: billing } = await all.get("/billing");
    const spent = 50_000_000 - billing.availableUsdMicros;
    const credits = 100 - billing.credits.available;
    expect(spent).toBeGreaterThan(0);
    expect(credits).toBe(9);
    const requests = await pagesOf(all, "/requests?limit=7");
    expect(sum(requests, "costUsdMicros")).toBe(spent);
    expect(sum(requests, "creditsCharged")).toBe(credits);
    for (const query of [
      "bucket_width=1h",
      "bucket_width=1d",
      "group_by[]=model",
      "group_by=api_key_id&group_by=kind&bucket_width=1h",
    ]) {
      const results = resultsOf(await usageOf(all, query));
      expect(sum(results, "spentUsdMicros"), query).toBe(spent);
      expect(sum(results, "spentCredits"), query).toBe(credits);
      expect(sum(results, "num_model_requests"), query).toBe(requests.length);
    }
    for (const caller of [first, second]) {
      const own = await pagesOf(caller, "/requests?limit=100");
      expect(own).toEqual(requests.filter(({ keyId }) => keyId === caller.keyId));
      const results = resultsOf(await usageOf(caller, "group_by[]=model"));
      expect(sum(results, "spentUsdMicros")).toBe(sum(own, "costUsdMicros"));
      const { json } = await caller.get("/key");
      expect(json.data.spentUsdMicros).toBe(sum(own, "costUsdMicros"));
    }
    for (const model of ["scripted", "scripted-image", "scripted-speech"]) {
      const results = resultsOf(await usageOf(all, `models[]=${model}`));
      const own = requests.filter((one) => one.model === model);
      expect(sum(results, "spentUsdMicros"), model).toBe(sum(own, "costUsdMicros"));
      expect(sum(results, "num_model_requests"), model).toBe(own.length);
    }

    const entries = await pagesOf(all, "/billing/entries?limit=5");
    const ofUnit = (unit: string) => entries.filter((entry) => entry.unit === unit);
    expect(sum(ofUnit("usd_micros"), "amount")).toBe(billing.availableUsdMicros);
    expect(sum(ofUnit("credits"), "amount")).toBe(billing.credits.available);
    expect(ofUnit("usd_micros")[0].balanceAfter).toBe(billing.availableUsdMicros);
    expect(ofUnit("credits")[0].balanceAfter).toBe(billing.credits.available);
    for (const unit of ["usd_micros", "credits"]) {
      const list = ofUnit(unit);
      for (const [i, { balanceAfter, amount }] of list.entries()) {
        expect(balanceAfter - amount).toBe(list[i + 1]?.balanceAfter ?? 0);
      }
    }
    const jsonl = await all.get("/billing/entries?format=jsonl");
    expect(
      jsonl.text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual(entries);
    const csv = await all.get("/billing/entries?format=csv");
    expect(csv.headers.get("content-type")).toContain("text/csv");
    const rows = csv.text.trim().split("\r\n").slice(1);
    expect(rows.map((row) => Number(row.split(",")[4]))).toEqual(
      entries.map(({ amount }) => amount),
    );
    const usageCsv = await all.get(`/usage?start_time=${dayStart()}&group_by[]=model&format=csv`);
    const [head = "", ...lines] = usageCsv.text.trim().split("\r\n");
    const column = head.split(",").indexOf("spentUsdMicros");
    expect(lines.reduce((total, line) => total + Number(line.split(",")[column]), 0)).toBe(spent);
    // With ten more pages of buckets the file is the same, because all usage is in the last one.
    const long = await all.get(
      `/usage?start_time=${dayStart() - 300 * 86_400}&group_by[]=model&format=csv`,
    );
    expect(long.headers.get("content-type")).toContain("text/csv");
    expect(long.text).toBe(usageCsv.text);
    for await (const { finding } of world.admin.billing.auditLedger({
      accountId: first.accountId,
    })) {
      expect(finding.case).toBe("summary");
    }
  });
});

describe("GET /requests", () => {
  test("tells of a request what the ledger keeps, and no prompt, answer or upstream", async () => {
    const { first } = await threeKeys(world);
    const answer = await first.post(
      "/responses",
      { model: "scripted", input: "A secret word" },
      { headers: { "x-request-id": "mine-1" } },
    );
    const { json, text } = await first.get("/requests");
    expect(json).toMatchObject({ object: "list", has_more: false, nextCursor: null });
    expect(json.data).toEqual([
      {
        id: answer.json.id,
        object: "request",
        requestId: answer.headers.get("x-request-id"),
        createdAt: expect.stringMatching(/^20.*Z$/),
        endedAt: expect.stringMatching(/^20.*Z$/),
        kind: "text",
        operation: "responses",
        model: "scripted",
        keyId: first.keyId,
        status: "completed",
        streamed: false,
        tokens: {
          input: answer.json.usage.input_tokens,
          cachedInput: 0,
          output: answer.json.usage.output_tokens,
          reasoning: 0,
        },
        inputCacheWriteTokens: 0,
        inputCacheWriteLongTokens: 0,
        inputAudioTokens: 0,
        inputImageTokens: 0,
        outputAudioTokens: 0,
        outputImageTokens: 0,
        toolCalls: {},
        priceAboveInputTokens: 0,
        servedTier: null,
        images: 0,
        seconds: 0,
        characters: 0,
        firstOutputMs: expect.any(Number),
        durationMs: expect.any(Number),
        costUsdMicros: 30,
        creditsCharged: 0,
        estimated: false,
        finishReason: "stop",
        error: null,
      },
    ]);
    expect(text).not.toMatch(/secret|main|up-model/);
  });

  test("tells of jobs and speech how much was made", async () => {
    const { first } = await threeKeys(world);
    const job = await submit(first, "images", { model: "scripted-image", prompt: "x", n: 2 });
    await ended(first, job);
    const speech = await first.post("/speech/generations", {
      ...{ model: "scripted-speech", input: "Hello", voice: "alloy" },
    });
    const { json } = await first.get("/requests");
    const byId = new Map(json.data.map((one: Document) => [one.id, one]));
    expect(byId.get(job.id)).toMatchObject({
      ...{ kind: "image", model: "scripted-image", status: "completed", images: 2 },
      ...{ creditsCharged: 2, costUsdMicros: 0, operation: "image" },
      requestId: expect.stringMatching(/^req_/),
    });
    expect(byId.get(speech.json.id)).toMatchObject({
      ...{ kind: "speech", characters: 5, costUsdMicros: speech.json.usage.costUsdMicros },
      seconds: speech.json.audio.durationSeconds,
      requestId: expect.stringMatching(/^req_/),
    });
    const failing = { kind: "status", status: 400 } as const;
    media.always(create, failing);
    const failed = await submit(first, "images", { model: "scripted-image", prompt: "x" });
    await ended(first, failed);
    const { json: next } = await first.get("/requests?status=failed");
    expect(next.data).toMatchObject([{ id: failed.id, status: "failed", creditsCharged: 0 }]);
  });

  test("pages go on while requests come in, and back", async () => {
    const { first } = await threeKeys(world);
    const ask = () => first.post("/responses", { model: "scripted", input: "Hi" });
    const ids = [];
    for (let i = 0; i < 5; i++) ids.unshift((await ask()).json.id);
    const page = (await first.get("/requests?limit=2")).json;
    const idsOf = ({ data }: Document) => data.map(({ id }: Document) => id);
    expect(idsOf(page)).toEqual(ids.slice(0, 2));
    const newest = (await ask()).json.id;
    const older = (await first.get(`/requests?limit=2&after=${page.last_id}`)).json;
    expect(idsOf(older)).toEqual(ids.slice(2, 4));
    const newer = (await first.get(`/requests?limit=2&before=${older.first_id}`)).json;
    expect(idsOf(newer)).toEqual(ids.slice(0, 2));
    expect(newer).toMatchObject({ has_more: true, nextCursor: null });
    const last = (await first.get(`/requests?limit=2&before=${newer.first_id}`)).json;
    expect(idsOf(last)).toEqual([newest]);
    expect(last.has_more).toBe(false);
  });
});

describe("GET /generation", () => {
  test("finds a request by what its caller knows it by", async () => {
    const { first, second, all } = await threeKeys(world);
    const chat = await first.post(
      "/chat/completions",
      { model: "scripted", messages: [{ role: "user", content: "Hi" }] },
      { headers: { "x-request-id": "mine-2" } },
    );
    const requestId = chat.headers.get("x-request-id");
    const job = await submit(first, "images", { model: "scripted-image", prompt: "x" });
    await ended(first, job);
    for (const id of [chat.json.id, requestId]) {
      const { json } = await first.get(`/generation?id=${id}`);
      expect(json.data).toMatchObject({
        ...{ id: chat.json.id, model: "scripted", streamed: false, cancelled: false },
        ...{ costUsdMicros: 30, total_cost: 0.00003, usage: 0.00003, finish_reason: "stop" },
        tokens_prompt: chat.json.usage.prompt_tokens,
        tokens_completion: chat.json.usage.completion_tokens,
        native_tokens_prompt: chat.json.usage.prompt_tokens,
        native_tokens_completion: chat.json.usage.completion_tokens,
        ...{ native_tokens_reasoning: 0, native_tokens_cached: 0 },
        ...{ latency: expect.any(Number), generation_time: expect.any(Number) },
        ...{ provider_name: null, requestId, keyId: first.keyId },
      });
    }
    expect((await all.get(`/generation?id=${job.id}`)).json.data).toMatchObject({
      ...{ id: job.id, kind: "image", creditsCharged: 1, total_cost: 0 },
    });
    const stranger = await world.caller();
    const never = await first.get("/generation?id=resp_never");
    expect(refusalOf(never)).toBe("404 not_found_error request_not_found null");
    for (const other of [second, stranger]) {
      for (const id of [chat.json.id, requestId, job.id]) {
        const asked = await other.get(`/generation?id=${id}`);
        expect(asked.json).toEqual(never.json);
        expect(asked.status).toBe(404);
      }
    }
    const missing = await first.get("/generation");
    expect(refusalOf(missing)).toContain("400 invalid_request_error missing_required_parameter id");
  });
});

describe("another key's and another account's usage", () => {
  test("is not shown, nor whether there is any", async () => {
    const { first, second } = await threeKeys(world);
    await first.post("/responses", { model: "scripted", input: "Hi" });
    const stranger = await world.caller();
    const sight = await world.withKey(stranger, { scopes: [Scope.BILLING, Scope.USAGE_READ_ALL] });
    const paths = ["/requests", "/billing/entries?kind=charge", `/usage?start_time=${dayStart()}`];
    for (const path of paths) {
      for (const other of [second, stranger, sight]) {
        const { json } = await other.get(path);
        const shown = json.data.flatMap((one: Document) => one.results ?? [one]);
        expect(shown, path).toEqual([]);
      }
    }
    // The answer depends only on the account's own key. The id of a foreign account's key is a filter that matches nothing.
    const { json } = await sight.get(`/requests?key=${first.keyId}`);
    expect(json.data).toEqual([]);
    for (const path of [
      `/requests?key=${first.keyId}`,
      `/requests?key=key_none`,
      `/usage?start_time=0&api_key_ids[]=${first.keyId}`,
    ]) {
      expect(refusalOf(await second.get(path)), path).toContain(
        "403 permission_error permission_denied",
      );
    }
    // A text that cannot be a key's id is the caller's mistake, with any key and in every parameter for an id.
    for (const id of ["%00", "..", "%27", ";", "a%2Fb", "k".repeat(65)]) {
      for (const [param, path] of [
        ["api_key_ids", `/usage?start_time=0&api_key_ids[]=${id}`],
        ["api_key_ids", `/usage?start_time=0&format=csv&api_key_ids=key_a&api_key_ids[]=${id}`],
        ["key", `/requests?key=${id}`],
      ] as const) {
        const refused = await sight.get(path);
        expect(refusalOf(refused), path).toContain("400 invalid_request_error invalid_value");
        expect(refused.json.error.param, path).toBe(param);
      }
      for (const path of [
        `/keys/${id}`,
        `/jobs?after=${id}`,
        `/jobs?cursor=${id}`,
        `/webhooks?cursor=${id}`,
        `/files?after=${id}`,
        `/files/${id}`,
        `/images/generations/${id}`,
        `/generation?id=${id}`,
        `/jobs?model=${id}`,
        `/requests?after=${id}`,
        `/billing/entries?after=${id}`,
        `/billing/holds?after=${id}`,
      ]) {
        expect((await sight.get(path)).status, path).toBeLessThan(500);
      }
    }
    const text = await world.withKey(first, { scopes: [Scope.TEXT] });
    expect((await text.get("/requests")).status).toBe(200);
    expect((await text.get("/billing/entries")).status).toBe(403);
    expect((await text.get("/billing/holds")).status).toBe(403);
  });
});

test("queries that make no sense name their parameter", async () => {
  const { first } = await threeKeys(world);
  for (const [path, refusal] of [
    ["/usage", "missing_required_parameter start_time"],
    ["/usage?start_time=x", "invalid_type start_time"],
    ["/usage?start_time=0&bucket_width=1m", "invalid_value bucket_width"],
    ["/usage?start_time=0&group_by[]=user", "invalid_value group_by"],
    ["/usage?start_time=0&kinds=x", "invalid_value kinds"],
    ["/usage?start_time=0&limit=32", "invalid_value limit"],
    ["/usage?start_time=0&page=5", "invalid_value page"],
    ["/usage?start_time=0&format=xml", "invalid_value format"],
    ["/requests?after=x", "invalid_value after"],
    ["/requests?after=1.u.1&before=1.u.1", "invalid_value before"],
    ["/requests?kind=x", "invalid_value kind"],
    ["/requests?status=zzz", "invalid_value status"],
    ["/requests?status=constructor", "invalid_value status"],
    ["/requests?limit=101", "invalid_value limit"],
    ["/billing/entries?kind=hold", "invalid_value kind"],
    ["/billing/entries?after=x&format=csv", "invalid_value after"],
    ["/billing/holds?after=x", "invalid_value after"],
  ] as const) {
    expect(refusalOf(await first.get(path)), path).toBe(`400 invalid_request_error ${refusal}`);
  }
  const long = await first.get(`/usage?start_time=0&bucket_width=1h&limit=168`);
  expect(long.json).toMatchObject({ has_more: true, next_page: `t${168 * 3_600}` });
  expect(long.json.data).toHaveLength(168);
  const none = await first.get("/usage?start_time=9000000000");
  expect(none.json).toEqual({ object: "page", data: [], has_more: false, next_page: null });
});
