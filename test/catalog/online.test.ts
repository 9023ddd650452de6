import { readFileSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { runOperatorCommand } from "../support/operator-command.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { startAnthropic } from "../support/upstreams/anthropic.ts";
import { startComfy } from "../support/upstreams/comfyui.ts";
import { startDeclaredService } from "../support/upstreams/declared.ts";
import { tokenIssuer } from "../support/upstreams/declared-common.ts";
import type { DeclaredName } from "../support/upstreams/declared-facts.ts";
import { reply, startDouble } from "../support/upstreams/double.ts";
import { startElevenLabs } from "../support/upstreams/elevenlabs.ts";
import { startFal } from "../support/upstreams/fal.ts";
import { startReplicate } from "../support/upstreams/replicate.ts";
import { usualVersion } from "../support/upstreams/replicate-schemas.ts";

const key = "sk-of-the-operator";
const shipped = fileURLToPath(new URL("../../deploy/catalogs", import.meta.url));
const folder = await mkdtemp(join(tmpdir(), "genmesh-online-"));
await using stack = new AsyncDisposableStack();
const fal = stack.use(await startFal({ key }));
const replicate = stack.use(await startReplicate({ key }));
const comfy = stack.use(await startComfy({ key }));
const elevenlabs = stack.use(await startElevenLabs({ key }));
const anthropic = stack.use(await startAnthropic({ key }));
const openai = await startScriptedUpstream();
stack.defer(openai.close);
const owned = stack.move();
for (const name of ["sdxl.json", "wan.json", "ace-step.json"])
  await cp(join(shipped, name), join(folder, name));
afterAll(async () => {
  await owned.disposeAsync();
  await rm(folder, { recursive: true });
});

// biome-ignore lint/suspicious/noExplicitAny: catalogs are changed at places of every shape.
type Catalog = any;

/** A shipped catalog with all of its upstreams at one address. */
async function catalogOf(name: string, baseUrl: string): Promise<Catalog> {
  const catalog = parse(await readFile(join(shipped, `${name}.yaml`), "utf8"));
  for (const upstream of Object.values<Catalog>(catalog.upstreams)) {
    Object.assign(upstream, { baseUrl, apiKeyEnv: "UP_KEY" });
  }
  return catalog;
}

/** The output of `genmesh catalog check --online` for a catalog. */
async function check(catalog: Catalog, env: Record<string, string> = { UP_KEY: key }) {
  const file = join(folder, "catalog.yaml");
  await writeFile(file, JSON.stringify(catalog));
  const words = ["catalog", "check", file, "--online", "--json"];
  const { code, out, err } = await runOperatorCommand(words, { GENMESH_DATA_DIR: folder, ...env });
  const { faults } = JSON.parse(out + err);
  return { code, faults: faults.map(({ path, message }: Catalog) => `${path}: ${message}`) };
}

const model = (catalog: Catalog, id: string) =>
  catalog.models.find((one: Catalog) => one.id === id);

const declaredExamples = [
  "ark",
  "bfl",
  "google",
  "kling",
  "minimax",
  "pixverse",
  "runway",
  "vidu",
  "wan",
  "xai",
];

describe.each(declaredExamples)("catalog check --online of %s", (name) => {
  const { upstreams } = parse(readFileSync(join(shipped, `${name}.yaml`), "utf8"));
  const names = Object.keys(upstreams) as DeclaredName[];

  test("finds nothing with a right key, and the upstream's word for a wrong one", async () => {
    await using own = new AsyncDisposableStack();
    const catalog = await catalogOf(name, "");
    for (const one of names) {
      const service = own.use(await startDeclaredService(one, { key }));
      catalog.upstreams[one].baseUrl = service.baseUrl;
    }
    const issuer = { KLING_ACCESS_KEY: tokenIssuer };
    expect(await check(catalog, { UP_KEY: key, ...issuer })).toEqual({ code: 0, faults: [] });
    const { code, faults } = await check(catalog, { UP_KEY: "wrong", ...issuer });
    expect(code).toBe(1);
    expect(faults.join()).toMatch(
      /the upstream's question (answers 4\d\d|is refused \(answers\.denied\))/,
    );
  });
});

describe("catalog check --online at fal", () => {
  test("finds nothing in the shipped catalog but what the client's types do not have", async () => {
    const { code, faults } = await check(await catalogOf("fal", fal.origin));
    expect(faults.map((one: string) => one.replace(/^models\[\d+\]\./, ""))).toEqual([
      // The client's types give Wan 2.5 those of Wan 2.7.
      'call.t2v.input.resolution: must be "720p", "1080p"; it would be "480p" (fal)',
      "call.t2v.model: fal's description of the model answers 404 (fal)",
      "call.i2v.model: fal's description of the model answers 404 (fal)",
      "call.model: fal's description of the model answers 404 (fal)",
    ]);
    expect(code).toBe(1);
    // Descriptions need no key, so none is sent.
    for (const { headers } of fal.requests) expect(headers.authorization).toBeUndefined();
    expect(fal.seen("submit")).toEqual([]);
  });

  test("finds what a model does not take, lacks, or does not answer", async () => {
    const catalog = await catalogOf("fal", fal.origin);
    const image = model(catalog, "image-1");
    delete image.call.input.prompt;
    Object.assign(image.call.input, {
      ...{ prompts: "${prompt}", num_images: "${count:string}", output_format: "gif" },
    });
    image.call.output = "pictures[*].url";
    const video = model(catalog, "svcalt-video-1-5b");
    video.call.i2v.input.duration = "${seconds}";
    video.videoOptions = video.videoOptions.filter((row: Catalog) => row.durationSeconds === 5);
    const edit = model(catalog, "image-edit-1");
    delete edit.call.input.image_urls;
    edit.maxReferences = 0;
    catalog.models = [image, video, edit];
    const { faults } = await check(catalog);
    expect(faults).toEqual([
      expect.stringMatching(
        /^models\[0\]\.call\.input\.num_images: must be a number; it would be "1"/,
      ),
      'models[0].call.input.output_format: must be "jpeg", "png"; it would be "gif" (fal)',
      "models[0].call.input.prompts: is no input of the model (fal)",
      expect.stringMatching(/^models\[0\]\.call\.input\.prompt: is required by the model/),
      expect.stringMatching(/^models\[0\]\.call\.input\.num_images: .* would be "4"/),
      "models[0].call.output: leads to no text in what the model answers (fal)",
      expect.stringMatching(
        /^models\[1\]\.call\.i2v\.input\.duration: must be .*"5", .*; it would be 5 /,
      ),
      expect.stringMatching(/^models\[2\]\.call\.input\.image_urls: is required by the model/),
    ]);
  });
});

describe("catalog check --online at Replicate", () => {
  test("finds nothing in the shipped catalog, by the latest version or a named one", async () => {
    const catalog = await catalogOf("replicate", replicate.baseUrl);
    expect(await check(catalog)).toEqual({ code: 0, faults: [] });
    model(catalog, "image-1").call.model += `:${usualVersion}`;
    expect(await check(catalog)).toEqual({ code: 0, faults: [] });
    expect(replicate.seen("version").length).toBe(1);
    expect(replicate.predictions).toEqual([]);
  });

  test("finds bounds and enumerations, and what is not there", async () => {
    const catalog = await catalogOf("replicate", replicate.baseUrl);
    model(catalog, "image-1").maxImages = 8;
    const video = model(catalog, "seedance-1-pro");
    video.videoOptions[0].durationSeconds = 30;
    video.call.t2v.input.aspect_ratio.$map = "${aspectRatio}";
    video.call.t2v.input.aspect_ratio.auto = "adaptive";
    model(catalog, "music-1").call.model = "minimax/music-9";
    const { faults } = await check(catalog);
    expect(faults).toEqual([
      "models[0].call.input.num_outputs: must be at most 4; it would be 8 (replicate)",
      "models[2].call.t2v.input.duration: must be at most 12; it would be 30 (replicate)",
      expect.stringMatching(
        /^models\[2\]\.call\.t2v\.input\.aspect_ratio: must be "16:9", .* would be "adaptive"/,
      ),
      "models[2].call.i2v.input.duration: must be at most 12; it would be 30 (replicate)",
      "models[3].call.model: Replicate's description of the model answers 404 (replicate)",
    ]);
  });

  test("names the variable of a key that is not set, and never its value", async () => {
    const { faults } = await check(await catalogOf("replicate", replicate.baseUrl), {});
    expect(faults[0]).toBe(
      "models[0].call.model: Replicate's description of the model cannot be read: the variable UP_KEY is not set (replicate)",
    );
    const wrong = await check(await catalogOf("replicate", replicate.baseUrl), {
      UP_KEY: "sk-wrong",
    });
    expect(wrong.faults[0]).toContain("answers 401");
    expect(wrong.faults.join("")).not.toContain("sk-wrong");
  });
});

describe("catalog check --online at ComfyUI", () => {
  test("finds nothing in the shipped catalog", async () => {
    expect(await check(await catalogOf("comfyui", comfy.origin))).toEqual({ code: 0, faults: [] });
    expect(comfy.runs).toEqual([]);
  });

  test("finds classes, files and values that the server does not have, and nodes that save nothing", async () => {
    const catalog = await catalogOf("comfyui", comfy.origin);
    const graph = JSON.parse(await readFile(join(shipped, "sdxl.json"), "utf8"));
    const nodes = Object.entries<Catalog>(graph);
    const idOf = (name: string) => nodes.find(([, node]) => node.class_type === name)?.[0] ?? "";
    const [loader, sampler] = [idOf("CheckpointLoaderSimple"), idOf("KSampler")];
    graph[loader].inputs.ckpt_name = "mine.safetensors";
    graph[sampler].inputs.steps = 0;
    delete graph[sampler].inputs.cfg;
    graph.extra = { class_type: "NobodysNode", inputs: {} };
    await writeFile(join(folder, "broken.json"), JSON.stringify(graph));
    const sdxl = model(catalog, "sdxl");
    sdxl.call.workflow = "broken.json";
    sdxl.maxImages = 10;
    sdxl.call.output = idOf("VAEDecode");
    catalog.models = [sdxl];
    const { faults } = await check(catalog);
    expect(faults).toEqual(
      expect.arrayContaining([
        expect.stringMatching(
          /call\.workflow: the input ckpt_name of node \w+ must be "v1-5.*mine/,
        ),
        expect.stringMatching(/call\.workflow: the input steps of node \w+ must be at least 1/),
        expect.stringMatching(/call\.workflow: node \w+ lacks the input cfg of a KSampler/),
        "models[0].call.workflow: node extra is a NobodysNode, which the server does not have (gpu)",
        "models[0].call.output: names a node that saves nothing (gpu)",
      ]),
    );
    expect(faults).toHaveLength(5);
  });
});

describe("catalog check --online at Anthropic", () => {
  test("finds models that are neither listed nor known by a short name", async () => {
    anthropic.models.splice(0, Infinity, "claude-opus-5-5", "claude-haiku-5-5");
    const catalog = await catalogOf("anthropic", anthropic.baseUrl);
    expect(await check(catalog)).toEqual({ code: 0, faults: [] });
    catalog.models[0].upstreamModel = "claude-opus-latest";
    catalog.models[1].upstreamModel = "claude-none";
    expect(await check(catalog)).toEqual({
      code: 1,
      faults: ["models[1].upstreamModel: the server lists no model 'claude-none' (anthropic)"],
    });
    expect(await check(catalog, { UP_KEY: "wrong" })).toMatchObject({
      faults: [
        expect.stringContaining("the server's list of models answers 401"),
        expect.anything(),
      ],
    });
    expect(anthropic.seen("messages")).toEqual([]);
  });
});

describe("catalog check --online at servers that list their models", () => {
  const lists = (...ids: string[]) =>
    openai.script(() => ({
      kind: "json",
      body: { object: "list", data: ids.map((id) => ({ id })) },
    }));

  test("finds models that are not there", async () => {
    const catalog = await catalogOf("openai", openai.baseUrl);
    const more = ["text-embedding-3-small", "whisper-1"];
    lists("gpt-5", "gpt-5-mini", "gpt-image-1", "tts-1", ...more);
    expect(await check(catalog)).toEqual({ code: 0, faults: [] });
    lists("gpt-5", "gpt-image-1", "tts-1", ...more);
    expect(await check(catalog)).toEqual({
      ...{ code: 1 },
      faults: ["models[1].upstreamModel: the server lists no model 'gpt-5-mini' (openai)"],
    });
    // One list for all models of an upstream.
    expect(openai.requests.filter(({ path }) => path.endsWith("/models"))).toHaveLength(2);
    openai.script(() => ({ kind: "status", status: 500 }));
    const { faults } = await check(catalog);
    expect(faults[0]).toBe("models[0]: the server's list of models answers 500 (openai)");
  });

  test("asks each upstream of a model, and takes Ollama's usual tag", async () => {
    const catalog = await catalogOf("ollama", openai.baseUrl);
    catalog.upstreams.second = { ...catalog.upstreams.ollama, baseUrl: `${openai.baseUrl}/second` };
    Object.assign(catalog.models[1], { upstreamModel: "gemma3", fallbackUpstreams: ["second"] });
    openai.script(({ path }) => {
      const data = path.includes("second") ? [] : [{ id: "gpt-oss:20b" }, { id: "gemma3:latest" }];
      return { kind: "json", body: { object: "list", data } };
    });
    const { faults } = await check(catalog);
    expect(faults).toEqual([
      "models[1].upstreamModel: the server lists no model 'gemma3' (second)",
    ]);
  });

  test("finds voices and models that ElevenLabs does not have", async () => {
    const catalog = await catalogOf("elevenlabs", `${elevenlabs.origin}/v1`);
    for (const id of Object.values<string>(catalog.models[0].upstreamVoices))
      elevenlabs.voices.add(id);
    expect(await check(catalog)).toEqual({ code: 0, faults: [] });
    const [first] = catalog.models;
    const voices = { ...first.upstreamVoices, george: "gone" };
    catalog.models = [{ ...first, upstreamModel: "eleven_v9", upstreamVoices: voices }];
    expect((await check(catalog)).faults).toEqual([
      "models[0].upstreamModel: ElevenLabs has no model 'eleven_v9' (elevenlabs)",
      "models[0].upstreamVoices.george: ElevenLabs' description of the voice answers 400 (elevenlabs)",
    ]);
    expect(elevenlabs.seen("speak")).toEqual([]);
  });
});

describe("catalog check --online at upstreams that the catalog describes", () => {
  test("sends the key to their own origin, and not to that of a description", async () => {
    const answer = (body: object) => () => reply(200, body);
    const route = { method: "GET", path: /./ };
    await using service = await startDouble([
      { ...route, name: "all", answer: answer({ models: [{ id: "models/film-1" }] }) },
    ]);
    await using other = await startDouble([{ ...route, name: "all", answer: answer({}) }]);
    const jobs = {
      auth: { header: "x-key" },
      create: { post: "/videos", take: { id: "id" } },
      poll: { get: "/videos/${id}", state: "status" },
      states: { running: "running", done: "done" },
      check: { get: "/models", models: "models[*].id" },
      openapi: `${other.origin}/openapi.json`,
    };
    const mine = { protocol: "jobs", baseUrl: service.origin, apiKeyEnv: "UP_KEY", jobs };
    const input = { model: "${model}", prompt: "${prompt}" };
    const video = {
      ...{ id: "film", kind: "video", upstream: "mine", availableAspectRatios: ["auto"] },
      videoOptions: [{ durationSeconds: 6, resolution: "720p", modes: ["t2v"], credits: 1 }],
      call: { model: "film-2", input, output: "url" },
    };
    const { faults } = await check({ upstreams: { mine }, models: [video] });
    expect(faults).toEqual([
      "models[0].call.model: is none of the models that the upstream names (mine)",
      "models[0].call.model: has no path in the upstream's description (mine)",
    ]);
    expect(service.requests.map(({ headers }) => headers["x-key"])).toEqual([key]);
    expect(other.requests).toHaveLength(1);
    expect(JSON.stringify(other.requests[0]?.headers)).not.toContain(key);
  });
});
