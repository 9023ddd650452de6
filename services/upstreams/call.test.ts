import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { createHttpClient } from "#kit/upstream/client.ts";
import { readKeyFile } from "#kit/upstream/key-file.ts";
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

test("a key that is swapped in its file is sent with the next call", async () => {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-keys-"));
  const file = join(folder, "key");
  const server = await startScriptedUpstream();
  await using http = createHttpClient();
  const minute = 60_000n;
  const times = { timeoutMs: minute, idleTimeoutMs: minute, connectTimeoutMs: minute };
  const { baseUrl } = server;
  const upstream = create(UpstreamSchema, { baseUrl, apiKeyFile: file, ...times });
  const signal = AbortSignal.timeout(20_000);
  const ask = async () => {
    server.script({ kind: "json", body: {} });
    const call = { upstream, method: "GET", url: `${baseUrl}/models`, signal } as const;
    (await callUpstream({ http, secrets: readKeyFile }, call)).body.close();
    return server.requests.at(-1)?.headers.authorization;
  };
  await expect(ask()).rejects.toMatchObject({ kind: "misconfigured" });
  await writeFile(file, "first\n");
  expect(await ask()).toBe("Bearer first");
  await writeFile(`${file}.new`, "second\n");
  await rename(`${file}.new`, file);
  expect(await ask()).toBe("Bearer second");
  await server.close();
  await rm(folder, { recursive: true });
});
