import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import type { ModelCall } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { until } from "../../../test/support/until.ts";
import {
  type ComfyDouble,
  type ComfyOptions,
  startComfy,
} from "../../../test/support/upstreams/comfyui.ts";
import { seedOf } from "../by-template/values.ts";
import type { GenerationTask } from "../media/port.ts";
import { sampleMp4, samplePng } from "../media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  musicRequest,
  reference,
  upstreamAt,
  upstreamKey,
  videoRequest,
} from "../media/world.fixture.ts";
import { comfyCalls } from "./calls.fixture.ts";

type Vintage = NonNullable<ComfyOptions["vintage"]>;
const vintages: Vintage[] = ["2026", "2025", "2024"];
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

let comfy: ComfyDouble;
let world: Awaited<ReturnType<typeof createWorld>>;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  // The task's WebSocket is closed after any end.
  await until("every WebSocket is closed", () => comfy.clients().length === 0);
  await comfy[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

async function start(vintage: Vintage = "2026") {
  comfy = await startComfy({ vintage, key: upstreamKey });
  comfy.outputs.video = sampleMp4({ seconds: 5 });
}

const upstream = () => upstreamAt(comfy.origin, "COMFYUI");
const image = (asked: Partial<GenerationTask> = {}) =>
  world.task({ upstream: upstream(), request: imageRequest, call: comfyCalls.image, ...asked });
const film = {
  ...videoRequest,
  ...({ mode: "i2v", durationSeconds: 5, resolution: "480p", aspectRatio: "9:16" } as const),
};
const video = async (asked: Partial<GenerationTask> = {}) =>
  world.task({
    ...{ upstream: upstream(), request: film, call: comfyCalls.video },
    ...{ references: [reference(await samplePng(64, 48))], ...asked },
  });
const inputsOf = (node: string, run = 0) => comfy.runs[run]?.graph[node]?.inputs;
const generate = (task: GenerationTask) => world.upstreams.generate(task);
const cancel = (resumeId: string) =>
  world.upstreams.cancel({
    ...{ jobId: "job_1", kind: "image", upstreamModel: "m", upstream: upstream(), resumeId },
    signal: AbortSignal.timeout(10_000),
  });
/** The call with changes. `change` gets its graph and its input. */
function changed(call: ModelCall, change: (graph: JsonObject, input: JsonObject) => void) {
  const graph = JSON.parse(call.workflow);
  const input = JSON.parse(call.input);
  change(graph, input);
  return { ...call, workflow: JSON.stringify(graph), input: JSON.stringify(input) };
}

describe.each(vintages)("a ComfyUI of %s", (vintage) => {
  beforeEach(() => start(vintage));

  test("makes pictures: the id stored before the graph is sent, with the job's values in it", async () => {
    const { task, resumeIds, sendings } = image({ request: { ...imageRequest, count: 2 } });
    const saved: number[] = [];
    const saveResumeId = async (id: string) => {
      saved.push(comfy.seen("submit").length);
      await task.saveResumeId(id);
    };
    const outputs = await generate({ ...task, saveResumeId });
    expect(outputs.map(({ mimeType }) => mimeType)).toEqual(["image/png", "image/png"]);
    const [first] = outputs;
    expect(await world.stored(first?.blobKey ?? "")).toEqual(comfy.outputs.images[0]);
    expect(saved[0]).toBe(0);
    expect(resumeIds[0]).toMatch(uuid);
    expect(resumeIds.at(-1)).toBe(comfy.runs[0]?.id);
    expect(resumeIds).toHaveLength(vintage === "2024" ? 2 : 1);
    expect(sendings).toHaveLength(1);
    expect(comfy.seen("submit")[0]?.body).toMatchObject({
      ...{ client_id: resumeIds[0], prompt_id: resumeIds[0] },
    });
    expect(inputsOf("6")).toEqual({ text: "a red boat", clip: ["4", 1] });
    expect(inputsOf("5")).toEqual({ width: 1024, height: 1024, batch_size: 2 });
    expect(inputsOf("3")).toMatchObject({ seed: seedOf("job_1"), steps: 30 });
    for (const { headers } of comfy.requests) {
      expect(headers.authorization).toBe(`Bearer ${upstreamKey}`);
      expect(headers.origin).toBeUndefined();
    }
  });

  test("makes a film from a picture, and tells how far it is", async () => {
    comfy.usual.pace = "looks";
    const bytes = await samplePng(64, 48);
    const { task, progress } = await video({ references: [reference(bytes)] });
    const outputs = await generate(task);
    expect(outputs).toMatchObject([{ mimeType: "video/mp4", durationSeconds: 5 }]);
    expect(comfy.runs[0]?.references).toEqual([{ at: "52.image", bytes }]);
    expect(inputsOf("50")).toMatchObject({ width: 480, height: 832, length: 81 });
    expect(progress.length).toBeGreaterThan(2);
    expect(progress.every((percent) => percent > 0 && percent < 100)).toBe(true);
  });

  test("makes sound", async () => {
    const asked = { upstream: upstream(), request: musicRequest, call: comfyCalls.music };
    const outputs = await generate(world.task(asked).task);
    expect(outputs).toMatchObject([{ mimeType: "audio/mpeg", width: 0 }]);
    expect(inputsOf("14")).toMatchObject({ tags: "Tides, slow", lyrics: "la la" });
  });

  test("is found at work by a later attempt, and is not asked again", async () => {
    comfy.usual.pace = "looks";
    const left = new AbortController();
    const first = image({ progress: () => left.abort(new Error("gone")) });
    await expect(generate({ ...first.task, signal: left.signal })).rejects.toThrow("gone");
    const resumeId = first.resumeIds.at(-1);
    const second = image({ resumeId });
    await expect(generate(second.task)).resolves.toHaveLength(1);
    expect(second.sendings).toEqual([]);
    // A task that has ended is found in the history.
    await expect(generate(image({ resumeId }).task)).resolves.toHaveLength(1);
    expect(comfy.runs).toHaveLength(1);
  });

  test("is found where the answer to the graph was lost", async () => {
    comfy.usual.pace = "looks";
    comfy.next("submit", { kind: "lost" });
    const first = image();
    await expect(generate(first.task)).rejects.toMatchObject({ fault: "unknown" });
    const second = image({ resumeId: first.resumeIds[0] });
    await expect(generate(second.task)).resolves.toHaveLength(1);
    expect(comfy.runs).toHaveLength(1);
    expect(second.resumeIds).toEqual(vintage === "2024" ? [comfy.runs[0]?.id] : []);
  });

  test("is sent again where the attempt died before the graph was sent", async () => {
    const died = new Error("died");
    const first = image({ sending: () => Promise.reject(died) });
    await expect(generate(first.task)).rejects.toMatchObject({ cause: died });
    expect(comfy.runs).toEqual([]);
    const second = image({ resumeId: first.resumeIds[0] });
    await expect(generate(second.task)).resolves.toHaveLength(1);
    expect(comfy.runs).toHaveLength(1);
  });

  test("forgets it at a restart: the attempt breaks off, and the next one sends it again", async () => {
    comfy.usual.pace = "advance";
    const first = image();
    const work = generate(first.task);
    const isBrokenOff = expect(work).rejects.toMatchObject({ fault: "broke_off" });
    await comfy.request(vintage === "2026" ? "job" : "queue", 1);
    await comfy.restart();
    await isBrokenOff;
    comfy.usual.pace = "itself";
    const second = image({ resumeId: first.resumeIds.at(-1) });
    await expect(generate(second.task)).resolves.toHaveLength(1);
    expect(comfy.runs).toHaveLength(2);
    expect(inputsOf("3", 1)?.seed).toBe(inputsOf("3", 0)?.seed);
  });

  test("takes back what waits and what runs, and no other task", async () => {
    comfy.usual.pace = "advance";
    for (const client of ["one", "two", "three"]) {
      const prompt = JSON.parse(comfyCalls.image.workflow);
      prompt["3"].inputs.seed = client.length + client.charCodeAt(1);
      const headers = { authorization: `Bearer ${upstreamKey}` };
      const body = JSON.stringify({ prompt, client_id: client, prompt_id: crypto.randomUUID() });
      await fetch(`${comfy.origin}/prompt`, { method: "POST", headers, body });
    }
    const [one, two, three] = comfy.runs.map(({ id }) => id) as [string, string, string];
    expect(await cancel(two)).toBe(true);
    expect(comfy.runs.map(({ state }) => state)).toEqual(["running", "gone", "pending"]);
    expect(comfy.seen("interrupt")).toEqual([]);
    expect(await cancel(two)).toBe(false);
    expect(await cancel(crypto.randomUUID())).toBe(false);
    expect(await cancel(one)).toBe(true);
    comfy.finish();
    expect(await cancel(three)).toBe(false);
    const history = await fetch(`${comfy.origin}/history`, {
      headers: { authorization: `Bearer ${upstreamKey}` },
    }).then((answer) => answer.json());
    expect(history[one].status.messages.at(-1)[0]).toBe("execution_interrupted");
    expect(history[three].status.status_str).toBe("success");
    expect(comfy.seen("interrupt").map(({ body }) => body)).toEqual([{ prompt_id: one }]);
  });
});

describe("what goes wrong", () => {
  beforeEach(() => start());

  test("a graph of which a node is not valid is no success, and its rest does not run", async () => {
    comfy.usual.pace = "advance";
    const call = changed(comfyCalls.image, (graph) => {
      graph["20"] = { class_type: "LoadImage", inputs: { image: "nothing.png" } };
      graph["21"] = {
        class_type: "SaveImage",
        inputs: { images: ["20", 0], filename_prefix: "x" },
      };
    });
    const { task } = image({ call });
    await expect(generate(task)).rejects.toMatchObject({
      fault: "failed",
      message: expect.stringContaining("validation"),
    });
    comfy.finish();
    const [run] = comfy.runs;
    expect(comfy.seen("interrupt").map(({ body }) => body)).toEqual([{ prompt_id: run?.id }]);
    expect(comfy.seen("view")).toEqual([]);
  });

  test("one that is refused fails for good, with the kind of the error in the log and no words", async () => {
    const call = changed(comfyCalls.image, (graph) => {
      graph["9"] = { class_type: "Unheard", inputs: {} };
    });
    await expect(generate(image({ call }).task)).rejects.toMatchObject({ fault: "failed" });
    expect(world.logLines.join("\n")).toContain('"code":"missing_node_type"');
    expect(world.logLines.join("\n")).not.toContain("a red boat");
  });

  test("a node that fails, and one that is interrupted, fail for good", async () => {
    comfy.plan({ failure: { message: "a red boat is too big", type: "torch.OutOfMemoryError" } });
    await expect(generate(image().task)).rejects.toMatchObject({ fault: "failed" });
    expect(world.logLines.join("\n")).toContain("torch.OutOfMemoryError");
    expect(world.logLines.join("\n")).not.toContain("a red boat");
    comfy.plan({ pace: "looks", steps: 100 });
    const { task, resumeIds } = image({ progress: () => void cancel(resumeIds[0] ?? "") });
    await expect(generate(task)).rejects.toMatchObject({ fault: "failed" });
  });

  test("an output that the node did not save, or too few", async () => {
    const call = { ...comfyCalls.image, output: "8" };
    await expect(generate(image({ call }).task)).rejects.toMatchObject({ fault: "failed" });
    const one = changed(comfyCalls.image, (_, input) => {
      delete input["5.batch_size"];
    });
    const request = { ...imageRequest, count: 2 };
    await expect(generate(image({ call: one, request }).task)).rejects.toMatchObject({
      fault: "failed",
    });
  });

  test("a server that is away, or busy, has not taken the job", async () => {
    comfy.next("submit", { kind: "status", status: 503 });
    await expect(generate(image().task)).rejects.toMatchObject({
      ...{ fault: "not_taken", refusal: "unavailable", isCertain: true },
    });
    await comfy.stop();
    await expect(generate(image().task)).rejects.toMatchObject({
      ...{ fault: "not_taken", refusal: "unreachable", isCertain: true },
    });
    const references = await video();
    await expect(generate(references.task)).rejects.toMatchObject({
      ...{ fault: "not_taken", refusal: "unreachable", isCertain: true },
    });
    await comfy.start();
  });

  test("a WebSocket that breaks fails no task", async () => {
    comfy.usual.pace = "looks";
    const heard: number[] = [];
    const progress = (percent: number) => {
      heard.push(percent);
      comfy.dropSockets();
    };
    await expect(generate(image({ progress }).task)).resolves.toHaveLength(1);
    expect(heard.length).toBeGreaterThan(0);
    expect(Math.max(...heard)).toBeLessThan(90);
  });
});

describe("a queue that is too long to be read", () => {
  const graph = "x".repeat(9 * 1024 * 1024);
  const body = { queue_running: [], queue_pending: [[0, "another", graph, {}, []]] };

  test("costs no job", async () => {
    await start("2025");
    comfy.usual.pace = "looks";
    comfy.next("queue", { kind: "json", body });
    await expect(generate(image().task)).resolves.toHaveLength(1);
    expect(comfy.seen("queue").length).toBeGreaterThan(1);
  });

  test.each(["2025", "2024"] as const)(
    "and stays so hides no task of a server of %s that has ended",
    async (vintage) => {
      await start(vintage);
      comfy.always("queue", { kind: "json", body });
      const signal = AbortSignal.timeout(10_000);
      await expect(generate(image({ signal }).task)).resolves.toHaveLength(1);
    },
  );
});

describe("what an upload and a cache do", () => {
  beforeEach(() => start());

  test("a reference is loaded by the name that the upload was answered with", async () => {
    const bytes = await samplePng(64, 48);
    const first = await video({ references: [reference(bytes)] });
    await generate(first.task);
    const name = String(inputsOf("52")?.image);
    expect(name).toMatch(/^genmesh\/[0-9a-f]{32}\.png$/);
    // Equal bytes are stored there once.
    await generate((await video({ jobId: "job_2", references: [reference(bytes)] })).task);
    expect(inputsOf("52", 1)?.image).toBe(name);
    // Another's file has the name, so the upload gets a number.
    comfy.disk.set(`input/${name}`, await samplePng(8, 8));
    await generate((await video({ jobId: "job_3", references: [reference(bytes)] })).task);
    expect(inputsOf("52", 2)?.image).toBe(name.replace(".png", " (1).png"));
    expect(comfy.runs[2]?.references).toEqual([{ at: "52.image", bytes }]);
  });

  test("equal requests of two jobs are two pictures: the seed is the job's own", async () => {
    await generate(image({ jobId: "job_1" }).task);
    await generate(image({ jobId: "job_2" }).task);
    const names = comfy.seen("view").map(({ query }) => query.get("filename"));
    expect(new Set(names).size).toBe(2);
    // Another attempt of a job is the same graph, so the server's cache answers it.
    await generate(image({ jobId: "job_1" }).task);
    expect(comfy.seen("view").at(-1)?.query.get("filename")).toBe(names[0]);
  });
});
