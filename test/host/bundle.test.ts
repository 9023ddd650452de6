import { copyFile, mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeAll, expect, test } from "vitest";
import { build, bundleOf, programs } from "../../deploy/build.ts";
import { startCollector } from "../support/otlp.ts";
import { until } from "../support/until.ts";
import {
  type RunningMesh,
  root,
  startProcess,
  startRunning,
  tempFolder,
  type Variables,
} from "./process.ts";

/** Milliseconds in which a bundle is made and a mesh started on a busy machine. */
const setUpMs = 120_000;
/** Milliseconds for jobs of the built-in renderer. */
const jobsMs = 60_000;

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

let image: string;
let mesh: RunningMesh;

beforeAll(async () => {
  const folder = stack.use(await tempFolder());
  image = join(folder.path, "app");
  await layOut(image);
  const env = { GENMESH_DATA_DIR: join(folder.path, "data") };
  mesh = stack.use(await startRunning(env, join(image, bundleOf("services/host/main.ts"))));
}, setUpMs);

test("serves, and answers a prompt", async () => {
  expect(await (await fetch(`${mesh.origin}/healthz`)).text()).toBe("ok\n");
  const answer = await post("responses", { model: "chat-1", input: "hello" });
  expect(await answer.json()).toMatchObject({ status: "completed" });
});

test("has the console built, and its licences", async () => {
  const page = await fetch(`${mesh.origin}/console/`);
  expect(page.status).toBe(200);
  const html = await page.text();
  expect(html).toContain("<title>");
  expect(html).not.toContain("being built");
  for (const [path] of html.matchAll(/\/console\/assets\/[^"]+/g)) {
    const asset = await fetch(`${mesh.origin}${path}`);
    expect({ path, status: asset.status }).toEqual({ path, status: 200 });
    expect(asset.headers.get("cache-control")).toMatch(/immutable/);
  }
  const licences = await readFile(join(image, "dist/THIRD-PARTY-LICENCES.txt"), "utf8");
  expect(licences).toMatch(/^preact \d/m);
});

// An image, a video with audio, music, and speech: every encoder, the fonts, and the decoder of references.
test("finds what the built-in renderer is made of", { timeout: jobsMs }, async () => {
  const ended = await Promise.all([
    finished("images/generations", {
      model: "image-1",
      prompt: "a fox, 狐, 🦊",
      input_reference: { image_url: await picture() },
    }),
    finished("videos/generations", { model: "svc-video-1-5", prompt: "the sea" }),
    finished("music/generations", {
      model: "music-1",
      mode: "instrumental",
      title: "A waltz",
      prompt: "a waltz",
    }),
  ]);
  expect(ended).toEqual(ended.map(() => expect.objectContaining({ status: "completed" })));
  const words = { model: "speech-1", voice: "alloy", input: "hello" };
  const speech = await post("speech/generations", words);
  expect(await speech.json()).toMatchObject({ audio: { mimeType: "audio/mpeg" } });
});

test("serves its documentation", async () => {
  expect(await (await fetch(`${mesh.origin}/docs/`)).text()).toContain("genmesh API");
  const script = await fetch(`${mesh.origin}/docs/js/scalar.js`);
  expect((await script.arrayBuffer()).byteLength).toBeGreaterThan(1_000_000);
  expect(await (await fetch(`${mesh.origin}/openapi.json`)).text()).toBe(
    await readFile(join(root, "gateway/openapi.json"), "utf8"),
  );
});

test("is operated by the command, which finds the bundle where there are no sources", async () => {
  const command = [join(image, "bin/genmesh"), "--server", mesh.grpcAddress, "ledger", "audit"];
  const { code, stdout, stderr } = await run(command, {
    GENMESH_ADMIN_TOKEN: (await readFile(join(image, "../data/admin-token"), "utf8")).trim(),
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("the books agree");
});

test("sends its traces and metrics to a collector", { timeout: setUpMs }, async () => {
  await using collector = await startCollector();
  const env = {
    GENMESH_DATA_DIR: join(image, "../traced"),
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: "20",
    OTEL_METRIC_EXPORT_INTERVAL: "200",
  };
  await using traced = await startRunning(env, join(image, bundleOf("services/host/main.ts")));
  await fetch(`${traced.baseUrl}/models`);
  const isTold = () => collector.spans.some(({ name }) => name === "GET /v1/models");
  await until("a request's span", isTold, { withinMs: 60_000 });
  await until("metrics", () => collector.metrics().length > 20, { withinMs: 60_000 });
});

test("warms up: every module of every role can be loaded", { timeout: setUpMs }, async () => {
  const words = ["--disable-warning=ExperimentalWarning", join(image, "deploy/warm-up.ts")];
  const env = {
    GENMESH_DATA_DIR: join(image, "../warm"),
    PORT: "0",
    GRPC_PORT: "0",
    GENMESH_OPS_PORT: "0",
  };
  const { code, stderr } = await run(words, env);
  expect(code, stderr).toBe(0);
});

test.each(programs.filter((one) => !one.includes("host/main")))("%s is a program", async (one) => {
  // None of them knows this word, and each reports that itself. With a missing module it could not.
  const { code, stderr } = await run([join(image, bundleOf(one)), "--no-such-word"]);
  expect(code).not.toBe(0);
  expect(stderr).toContain("--no-such-word");
});

/** Makes the folders of the image: of node_modules only the packages of the manifest, and no sources. */
async function layOut(folder: string): Promise<void> {
  const dist = join(folder, "dist");
  await build(dist);
  const { dependencies } = JSON.parse(await readFile(join(dist, "package.json"), "utf8"));
  for (const name of Object.keys(dependencies)) {
    const place = join(folder, "node_modules", name);
    await mkdir(dirname(place), { recursive: true });
    await symlink(join(root, "node_modules", name), place);
  }
  for (const [from, to] of [
    ["bin/genmesh.js", "bin/genmesh"],
    ["deploy/warm-up.ts", "deploy/warm-up.ts"],
    [join(dist, "package.json"), "package.json"],
  ] as const) {
    await mkdir(dirname(join(folder, to)), { recursive: true });
    await copyFile(from.startsWith("/") ? from : join(root, from), join(folder, to));
  }
}

/** The job after its end. */
async function finished(path: string, body: object): Promise<object> {
  const job = await post(path, body);
  expect(job.status, path).toBe(202);
  const { statusUrl } = (await job.json()) as { statusUrl: string };
  const look = async () => {
    const seen = await (await fetch(statusUrl, { headers: authorization() })).json();
    return (seen as { terminal: boolean }).terminal ? (seen as object) : undefined;
  };
  return until(`the end of ${path}`, look, { withinMs: jobsMs, everyMs: 100 });
}

/** A small image as a data URI. */
async function picture(): Promise<string> {
  const empty = sharp({ create: { width: 64, height: 64, channels: 3, background: "red" } });
  return `data:image/png;base64,${(await empty.png().toBuffer()).toString("base64")}`;
}

async function run(words: readonly string[], env: Variables = {}) {
  await using child = startProcess(process.execPath, words, { env, cwd: image });
  const { code } = await child.ended;
  return { code, stdout: child.stdout(), stderr: child.stderr() };
}

function post(path: string, body: object): Promise<Response> {
  return fetch(`${mesh.baseUrl}/${path}`, {
    method: "POST",
    headers: { ...authorization(), "content-type": "application/json", "idempotency-key": path },
    body: JSON.stringify(body),
  });
}

function authorization(): Record<string, string> {
  return { authorization: `Bearer ${mesh.bannerKey}` };
}
