import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { type RunningMesh, startMeshProcesses } from "../support/mesh.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { until } from "../support/until.ts";
import { describeMesh } from "./servers.ts";

/** 16 MB as numbers. */
const [inputs, dimensions] = [256, 3_072];
const numbers = JSON.stringify(Array.from({ length: dimensions }, (_, at) => Math.sin(at + 1)));
const large = Buffer.from(
  `{"object":"list","data":[${Array.from(
    { length: inputs },
    (_, index) => `{"object":"embedding","index":${index},"embedding":${numbers}}`,
  ).join()}],"usage":{"prompt_tokens":${inputs},"total_tokens":${inputs}}}`,
);
const body = JSON.stringify({ model: "vectors", input: Array(inputs).fill("a") });
/** Two of the largest answers of each account are in memory at once. */
const fit = Math.floor((128 * 1024 * 1024) / large.length);
/** MiB of memory that these processes may have. */
const mostMib = { gateway: 384, text: 1_024 };

await describeMesh("a gateway and a text service", () => {
  const folder = mkdtempSync(join(tmpdir(), "genmesh-large-"));
  let upstream: ScriptedUpstream;
  let mesh: RunningMesh;
  beforeAll(async () => {
    upstream = await startScriptedUpstream();
    upstream.script({
      kind: "custom",
      handle(_seen, answer) {
        const headers = { "content-type": "application/json", "content-length": large.length };
        answer.writeHead(200, headers).end(large);
      },
    });
    const catalog = join(folder, "catalog.json");
    const model = {
      ...{ id: "vectors", kind: "embedding", upstream: "main", maxInputTokens: 1_000 },
      maxInputs: inputs,
      pricing: { inputUsdMicrosPerMillionTokens: 1_000_000 },
    };
    writeFileSync(
      catalog,
      JSON.stringify({
        developerPrompt: "",
        upstreams: { main: { protocol: "openai", baseUrl: upstream.baseUrl } },
        models: [model],
      }),
    );
    const env = { GENMESH_CATALOG: catalog };
    const started = await startMeshProcesses({ replicas: "1", dataDir: folder, env, log: [] });
    if (!started) throw new Error("there is no server for one of the stores");
    mesh = started;
  });
  afterAll(async () => {
    await mesh?.[Symbol.asyncDispose]();
    await upstream?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The most memory that the one process of a role has had, in MiB. */
  const memoryOf = (role: string) => {
    const pids = readdirSync(folder).map((name) => /^clock\.(\d+)$/.exec(name)?.[1]);
    const isOfRole = (pid: string) =>
      readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`GENMESH_ROLE=${role}`);
    const pid = pids.find((one) => one !== undefined && isOfRole(one));
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
  };

  test("hold a bounded part of large answers, which callers take slowly, and give all of them", {
    timeout: 300_000,
  }, async () => {
    const { account, secret } = await mesh.operator.auth.createAccount({ name: "large" });
    const accountId = account?.accountId ?? "";
    const grant = { accountId, unit: Unit.USD_MICROS, amount: 1_000_000n, operationId: "opening" };
    await mesh.operator.billing.grant(grant);
    const { hostname, port } = new URL(mesh.baseUrls[0] ?? "");
    const many = 24;
    const readers = Array.from({ length: many }, () => {
      const socket: Socket = connect(Number(port), hostname);
      onTestFinished(() => void socket.destroy());
      const reader = { socket, status: 0, bytes: 0 };
      socket.on("data", (chunk: Buffer) => {
        reader.bytes += chunk.length;
        if (reader.status !== 0) return;
        socket.pause();
        reader.status = Number(/^HTTP\/1.1 (\d+)/.exec(chunk.toString("latin1"))?.[1]);
      });
      socket.write(
        `POST /v1/embeddings HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${secret}\r\n` +
          `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      return reader;
    });
    const begun = () => readers.filter(({ status }) => status !== 0).length;
    await until("the first answers", () => begun() >= fit, { withinMs: 120_000 });
    const take = () => {
      for (const { status, socket } of readers) if (status !== 0) socket.resume();
      return readers.every(({ bytes }) => bytes > large.length);
    };
    await until("all answers", take, { withinMs: 240_000 });
    expect(readers.map(({ status }) => status)).toEqual(Array(many).fill(200));
    const memory = { gateway: memoryOf("gateway"), text: memoryOf("text") };
    expect(memory.gateway).toBeLessThan(mostMib.gateway);
    expect(memory.text).toBeLessThan(mostMib.text);
  });
});
