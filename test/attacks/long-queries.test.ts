import { once } from "node:events";
import { connect } from "node:http2";
import { createRequire } from "node:module";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { maxQueryNames, maxQueryParameters } from "#kit/edge/query-bounds.ts";
import { createGrpcServer } from "#kit/rpc/server.ts";
import { exchange } from "../edge/raw.ts";
import { type EdgeWorld, startEdge } from "../edge/world.ts";

/** The router's parser of queries. The router looks its function up for each query. */
const parser: { parse(query: string): object } = createRequire(
  createRequire(import.meta.url).resolve("find-my-way"),
)("fast-querystring");

let edge: EdgeWorld;
/** The largest number of names in a parsed query. */
let mostNames: number;
beforeAll(async () => {
  edge = await startEdge({ settings: { console: {} } });
  const { parse } = parser;
  vi.spyOn(parser, "parse").mockImplementation((query) => {
    const parsed = parse(query);
    mostNames = Math.max(mostNames, Object.keys(parsed).length);
    return parsed;
  });
});
afterAll(async () => {
  vi.restoreAllMocks();
  await edge[Symbol.asyncDispose]();
});
beforeEach(() => {
  mostNames = 0;
});

const namesOf = (count: number) => Array.from({ length: count }, (_, i) => `name${i}`).join("&");
const asked = (path: string, key?: string) =>
  exchange(
    edge.port,
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n` +
      `${key === undefined ? "" : `Authorization: Bearer ${key}\r\n`}\r\n`,
  );

test.each(["?", "#", "?a=%20&"])(
  "without a key no query of many names is parsed, behind %s",
  async (mark) => {
    for (const [path, status] of [
      ["/v1/models", 401],
      ["/v1/nothing", 401],
      ["/healthz", 400],
      ["/nothing", 400],
      ["/%zz", 400],
      ["/console/", 400],
      ["/console/api/session", 400],
      ["/console/api/v1/models", 401],
      ["http://other.test/v1/models", 401],
    ] as const) {
      const answer = await asked(`${path}${mark}${namesOf(1_500)}`);
      expect({ path, status: answer.status }).toEqual({ path, status });
    }
    expect(mostNames).toBeLessThanOrEqual(maxQueryNames);
  },
);

test("a query over its bounds is refused, one of as many as may be is read", async () => {
  const many = await asked(`/v1/models?${namesOf(maxQueryNames + 1)}`, edge.key);
  expect(many.status).toBe(400);
  expect(JSON.parse(many.body).error).toMatchObject({
    type: "invalid_request_error",
    code: "invalid_value",
    param: "query",
  });
  const same = await asked(`/v1/models?${"a&".repeat(maxQueryParameters + 1)}`, edge.key);
  expect(JSON.parse(same.body).error).toMatchObject({ code: "invalid_value", param: "query" });
  expect((await asked(`/v1/models?${namesOf(maxQueryNames)}`, edge.key)).status).toBe(200);
  const report = ["api_key_ids[]=k&".repeat(maxKeysPerAccount / 2), "models=m&".repeat(100)];
  const read = await asked(`/v1/usage?${report.join("")}limit=1`, edge.key);
  // The route has read the query, and this parameter is missing.
  expect(JSON.parse(read.body).error).toMatchObject({ param: "start_time" });
});

test("the gRPC port parses no query of many names", async () => {
  const server = createGrpcServer({ services: [], interceptors: [], isCaller: () => false });
  const port = await server.listen("127.0.0.1", 0);
  const session = connect(`http://127.0.0.1:${port}`);
  const call = session.request({ ":path": `/any.Service/Method?${namesOf(1_500)}` });
  await once(call, "response");
  session.destroy();
  await server.close();
  expect(mostNames).toBeLessThanOrEqual(maxQueryNames);
});
