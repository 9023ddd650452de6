import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { createHttpClient } from "#kit/upstream/client.ts";
import { UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { startScriptedUpstream } from "../../test/support/scripted-upstream.ts";
import { callUpstream, objectIn } from "./call.ts";

const nested = (depth: number) =>
  Buffer.from(`{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`);

test("an answer that is nested too deep to be walked is none", () => {
  expect(objectIn(nested(1_000))).toBeDefined();
  expect(objectIn(nested(1_001))).toBeUndefined();
  expect(objectIn(nested(200_000))).toBeUndefined();
});

test("brackets in a text are no nesting", () => {
  const a = "[{".repeat(100_000);
  expect(objectIn(Buffer.from(JSON.stringify({ a })))).toEqual({ a });
});

test("a head that does not come in its own time is not waited for as long as the rest may take", async () => {
  const server = await startScriptedUpstream();
  await using http = createHttpClient();
  server.script({ kind: "hang" });
  const minute = 60_000n;
  const times = { timeoutMs: minute, idleTimeoutMs: minute, connectTimeoutMs: minute };
  const upstream = create(UpstreamSchema, { baseUrl: server.baseUrl, ...times });
  const signal = AbortSignal.timeout(20_000);
  const call = {
    upstream,
    method: "GET",
    url: server.baseUrl,
    headTimeoutMs: 500,
    signal,
  } as const;
  const asked = callUpstream({ http, secrets: () => undefined }, call);
  await expect(asked).rejects.toMatchObject({ kind: "timeout" });
  await server.close();
});
