import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSocket } from "../support/caller-socket.ts";
import { promptly } from "../support/promptly.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import {
  type RunningMesh,
  startHost,
  startRunning,
  tempFolder,
  type Variables,
} from "./process.ts";

const key = "key-of-the-stopping-tests";
/** An answer of some 60 pieces takes about a minute. */
const slowMs = 1_000;
/** Acts like npm at a Ctrl-C that the terminal has sent to both. A second SIGINT comes after the first was handled. */
const passOn = `process.once("SIGINT", () => {
  process.once("SIGINT", () => console.error("passed on"));
  process.kill(process.pid, "SIGINT");
});`;

describe("SIGTERM", () => {
  test("while nothing is open: exit 0 at once, although a connection is kept alive", async () => {
    await using mesh = await startPaced();
    const answer = await mesh.post("/responses", { model: "swift", input: "Say done" });
    expect((await answer.json()).status).toBe("completed");
    expect((await fetch(`${mesh.origin}/readyz`)).status).toBe(200);
    // Some clients open a connection long before their request.
    using silent = await openConnection(mesh);
    const ended = await promptly(3_000, () => {
      mesh.kill("SIGTERM");
      return mesh.ended;
    });
    expect(ended).toEqual({ code: 0, signal: null });
    expect(silent.isOver()).toBe(true);
    expect(mesh.stdout()).toBe(
      `genmesh is ready: ${mesh.baseUrl}\nconsole: ${mesh.origin}/console/\n`,
    );
  });

  test("with a stream open: 503 on /readyz, still serving, the stream ends as it would have", async () => {
    await using upstream = await startScriptedUpstream();
    const rests = Promise.withResolvers<void>();
    upstream.script({ kind: "ok", restAfter: rests.promise });
    await using mesh = await startPaced({ GENMESH_DRAIN_MS: "50000" }, upstream.baseUrl);
    const stream = await openStream(mesh, "held");
    mesh.kill("SIGTERM");
    await mesh.logs("stopping");
    const ready = await fetch(`${mesh.origin}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([503, "stopping\n"]);
    expect((await fetch(`${mesh.origin}/healthz`)).status).toBe(200);
    const late = await mesh.post("/responses", { model: "swift", input: "Say served" });
    expect(late.status).toBe(200);
    expect((await late.json()).output[0].content[0].text).toBe("served");
    rests.resolve();
    const rest = await stream.rest();
    expect(rest).toContain("event: response.completed\n");
    expect(rest.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(await mesh.ended).toEqual({ code: 0, signal: null });
  });

  test("a stream that is longer than GENMESH_DRAIN_MS ends with response.failed", async () => {
    await using mesh = await startPaced({ GENMESH_DRAIN_MS: "300" });
    const stream = await openStream(mesh, "slow");
    const beganAt = performance.now();
    mesh.kill("SIGTERM");
    const rest = await stream.rest();
    expect(rest).toContain("event: response.failed\n");
    expect(rest).not.toContain("response.completed");
    expect(await mesh.ended).toEqual({ code: 0, signal: null });
    expect(performance.now() - beganAt).toBeGreaterThan(290);
    // A piece comes each second by the same process's clock. 25 come within the default time, and 60 are the whole answer.
    expect(rest.match(/^event: response\.output_text\.delta$/gm)?.length).toBeLessThan(10);
  });

  test("a WebSocket's answer that is longer than GENMESH_DRAIN_MS ends so too, and the WebSocket with 1012", async () => {
    await using mesh = await startPaced({ GENMESH_DRAIN_MS: "300" });
    using socket = await openSocket(mesh.baseUrl, key);
    const about = { model: "slow", input: "Tell me about rivers, mountains and the weather." };
    socket.send({ type: "response.create", ...about });
    await expect.poll(() => socket.frames.at(-1)?.type).toBe("response.output_text.delta");
    mesh.kill("SIGTERM");
    expect(await socket.closed).toBe(1012);
    expect((await socket.turn()).at(-1)).toMatchObject({
      ...{ type: "response.failed", response: { status: "failed" } },
      headers: { "x-request-id": expect.stringMatching(/^req_/) },
    });
    expect(await mesh.ended).toEqual({ code: 0, signal: null });
  });

  test("a second signal, later, ends the drain", async () => {
    await using mesh = await startPaced({
      GENMESH_DRAIN_MS: "600000",
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(passOn)}`,
    });
    const stream = await openStream(mesh, "slow");
    mesh.kill("SIGINT");
    await mesh.logs("stopping");
    // The same Ctrl-C, which comes again at once.
    await expect.poll(mesh.stderr).toContain("passed on");
    // Longer than the second in which a signal counts as the same one.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect((await fetch(`${mesh.origin}/readyz`)).status).toBe(503);
    mesh.kill("SIGINT");
    expect(await stream.rest()).toContain("event: response.failed\n");
    expect(await mesh.ended).toEqual({ code: 0, signal: null });
  });

  test("during the start: exit 0, and nothing is said on standard output", async () => {
    await using folder = await tempFolder();
    await using child = await startHost({ GENMESH_DATA_DIR: folder.path });
    await logged(child.stderr, "catalog loaded");
    child.kill("SIGTERM");
    const { code } = await child.ended;
    expect(code).toBe(0);
    // Where the signal came after the last step, both lines were printed before it.
    expect(child.stdout()).toMatch(/^(genmesh is ready.*\nconsole: .*\n)?$/);
  });
});

/** A mesh on a data directory of its own. Its chat models `swift` and `slow` answer at their pace, and `held` at the upstream's. */
async function startPaced(env: Variables = {}, upstreamUrl = "http://127.0.0.1:9/v1") {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await tempFolder());
  const file = join(folder.path, "catalog.yaml");
  await writeFile(file, JSON.stringify(catalog(upstreamUrl)));
  const mesh = stack.use(
    await startRunning({
      GENMESH_DATA_DIR: join(folder.path, "data"),
      GENMESH_CATALOG: file,
      GENMESH_BOOTSTRAP_API_KEY: key,
      ...env,
    }),
  );
  const owned = stack.move();
  return {
    ...mesh,
    logs: (message: string) => logged(mesh.stderr, message),
    post: (path: string, body: unknown) => post(mesh, path, body),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function post(mesh: RunningMesh, path: string, body: unknown): Promise<Response> {
  return fetch(mesh.baseUrl + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function openConnection(mesh: RunningMesh) {
  const socket = connect(Number(new URL(mesh.origin).port), "127.0.0.1");
  let isOver = false;
  socket.on("close", () => {
    isOver = true;
  });
  await once(socket, "connect");
  socket.on("error", () => {}).resume();
  return { isOver: () => isOver, [Symbol.dispose]: () => socket.destroy() };
}

/** Opens a stream and reads until its first delta. */
async function openStream(mesh: RunningMesh, model: string) {
  const answer = await post(mesh, "/responses", {
    model,
    input: "Tell me about rivers, mountains and the weather.",
    stream: true,
  });
  expect(answer.status).toBe(200);
  const body = answer.body ?? expect.unreachable();
  const reader = body.pipeThrough(new TextDecoderStream() as never).getReader();
  const next = async (): Promise<string> => {
    const { done, value } = await reader.read();
    if (done) throw new Error(`the stream ended too early: ${text}`);
    return value as unknown as string;
  };
  let text = "";
  while (!text.includes("output_text.delta")) text += await next();
  return {
    async rest() {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return text;
        text += value as unknown as string;
      }
    },
  };
}

/** Resolves once a line of the log has this message. */
async function logged(stderr: () => string, message: string): Promise<void> {
  await expect.poll(stderr, { timeout: 50_000, interval: 10 }).toContain(`"msg":"${message}"`);
}

function catalog(upstreamUrl: string): unknown {
  const chat = (id: string, upstream: string) => ({
    id,
    kind: "chat",
    upstream,
    maxInputTokens: 4_000,
    maxOutputTokens: 1_000,
    safetyMarginTokens: 10,
    pricing: {
      inputUsdMicrosPerMillionTokens: 1_000_000,
      cachedInputUsdMicrosPerMillionTokens: 1_000_000,
      outputUsdMicrosPerMillionTokens: 1_000_000,
    },
  });
  return {
    developerPrompt: "",
    upstreams: {
      swift: { protocol: "builtin", tokenDelayMs: 0 },
      slow: { protocol: "builtin", tokenDelayMs: slowMs },
      held: { protocol: "openai", baseUrl: upstreamUrl },
    },
    models: [chat("swift", "swift"), chat("slow", "slow"), chat("held", "held")],
  };
}
