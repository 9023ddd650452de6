import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket as WsClient } from "ws";
import { until } from "../until.ts";
import { type ComfyDouble, startComfy } from "./comfyui.ts";
import type { Graph } from "./comfyui-nodes.ts";

let comfy: ComfyDouble;
beforeEach(async () => {
  comfy = await startComfy();
});
afterEach(() => comfy[Symbol.asyncDispose]());

/** The graph of ComfyUI's script_examples/websockets_api_example.py. */
function exampleGraph(seed = 5): Graph {
  return {
    "3": {
      class_type: "KSampler",
      inputs: {
        ...{ cfg: 8, denoise: 1, latent_image: ["5", 0], model: ["4", 0], negative: ["7", 0] },
        ...{ positive: ["6", 0], sampler_name: "euler", scheduler: "normal", seed, steps: 20 },
      },
    },
    "4": {
      class_type: "CheckpointLoaderSimple",
      inputs: { ckpt_name: "v1-5-pruned-emaonly.ckpt" },
    },
    "5": { class_type: "EmptyLatentImage", inputs: { batch_size: 1, height: 512, width: 512 } },
    "6": { class_type: "CLIPTextEncode", inputs: { clip: ["4", 1], text: "best quality man" } },
    "7": { class_type: "CLIPTextEncode", inputs: { clip: ["4", 1], text: "bad hands" } },
    "8": { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["4", 2] } },
    "9": { class_type: "SaveImage", inputs: { filename_prefix: "ccniyUI", images: ["8", 0] } },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: documents of many shapes.
async function ask(path: string, body?: unknown, init: RequestInit = {}): Promise<any> {
  const asked = body === undefined ? init : { method: "POST", body: JSON.stringify(body), ...init };
  const answer = await fetch(`${comfy.origin}${path}`, asked);
  const text = await answer.text();
  return { status: answer.status, ...(text.startsWith("{") ? JSON.parse(text) : { text }) };
}
const queue = (prompt: Graph, more: object = {}) => ask("/prompt", { prompt, ...more });
const historyOf = async (id: string) => (await ask(`/history/${id}`))[id];
const doneEntry = (id: string) => until(`the history of ${id}`, () => historyOf(id));
const endsOf = (entry: { status: { messages: [string][] } }) => entry.status.messages.at(-1)?.[0];

/** A WebSocket by Node's own client, with all messages that it received. */
async function listen(clientId: string, first?: object) {
  const socket = new WebSocket(`${comfy.origin.replace("http", "ws")}/ws?clientId=${clientId}`);
  socket.binaryType = "arraybuffer";
  // biome-ignore lint/suspicious/noExplicitAny: events of many shapes.
  const heard: (Buffer | any)[] = [];
  socket.onmessage = ({ data }) =>
    heard.push(typeof data === "string" ? JSON.parse(data) : Buffer.from(data));
  await once(socket, "open");
  if (first) socket.send(JSON.stringify(first));
  const isEnd = ({ type, data }: { type?: string; data?: { node?: null } }) =>
    type === "executing" && data?.node === null;
  return { socket, heard, ended: () => until("the end", () => heard.some(isEnd)) };
}

describe("as ComfyUI's own example script asks it", () => {
  test("queues, listens until nothing is executing, and fetches the images", async () => {
    const clientId = randomUUID();
    const { heard, ended, socket } = await listen(clientId);
    const { prompt_id, number, node_errors } = await queue(exampleGraph(), { client_id: clientId });
    expect({ number, node_errors }).toEqual({ number: 0, node_errors: {} });
    await ended();
    const history = await historyOf(prompt_id);
    const [image] = history.outputs["9"].images;
    expect(image).toEqual({ filename: "ccniyUI_00001_.png", subfolder: "", type: "output" });
    const answer = await fetch(`${comfy.origin}/view?${new URLSearchParams(image)}`);
    expect(answer.headers.get("content-type")).toBe("image/png");
    expect(Buffer.from(await answer.arrayBuffer()).equals(comfy.outputs.images[0] as Buffer)).toBe(
      true,
    );

    const events = heard.filter((one) => !Buffer.isBuffer(one) && one.type !== "status");
    const [start, cached] = events;
    expect([start.type, cached.type]).toEqual(["execution_start", "execution_cached"]);
    expect(events.slice(-3).map(({ type }) => type)).toEqual([
      ...["progress_state", "execution_success", "executing"],
    ]);
    const values = events.filter(({ type }) => type === "progress").map(({ data }) => data);
    expect(values.map(({ value }) => value)).toEqual([1, 2, 3, 4]);
    expect(values[0]).toEqual({ value: 1, max: 4, prompt_id, node: "3" });
    const preview = heard.find(Buffer.isBuffer) as Buffer;
    expect([preview.readUInt32BE(0), preview.readUInt32BE(4)]).toEqual([1, 2]);
    expect(preview.subarray(9, 12).toString()).toBe("PNG");
    expect(history.status).toMatchObject({ status_str: "success", completed: true });
    expect(endsOf(history)).toBe("execution_success");
    socket.close();
  });

  test("negotiates previews with metadata; a second socket of an id takes the first one's place", async () => {
    const clientId = randomUUID();
    const first = await listen(clientId);
    const flags = { type: "feature_flags", data: { supports_preview_metadata: true } };
    const second = await listen(clientId, flags);
    await until("the flags", () => second.heard.some(({ type }) => type === "feature_flags"));
    const { prompt_id } = await queue(exampleGraph(), { client_id: clientId });
    await second.ended();
    const preview = second.heard.find(Buffer.isBuffer) as Buffer;
    expect(preview.readUInt32BE(0)).toBe(4);
    const metadata = preview.subarray(8, 8 + preview.readUInt32BE(4)).toString();
    expect(JSON.parse(metadata)).toMatchObject({
      prompt_id,
      node_id: "3",
      image_type: "image/png",
    });
    expect(first.heard.filter(({ type }) => type === "progress")).toEqual([]);
  });
});

describe("the queue", () => {
  test("runs one at a time; an equal id runs twice, an equal graph is answered from the cache", async () => {
    comfy.usual.pace = "advance";
    const id = randomUUID();
    for (const seed of [1, 2]) await queue(exampleGraph(seed), { prompt_id: id });
    const { prompt_id: equal } = await queue(exampleGraph(1));
    const { queue_running, queue_pending } = await ask("/queue");
    expect(queue_running.map((item: unknown[]) => item.slice(0, 2))).toEqual([[0, id]]);
    expect(queue_pending.map((item: unknown[]) => item.slice(0, 2))).toEqual([
      [1, id],
      [2, equal],
    ]);
    expect(await historyOf(id)).toBeUndefined();
    comfy.finish();
    expect(comfy.paid()).toEqual([id, id, equal]);
    expect((await historyOf(id)).outputs["9"].images[0].filename).toBe("ccniyUI_00002_.png");
    expect((await historyOf(equal)).outputs["9"].images[0].filename).toBe("ccniyUI_00001_.png");
  });

  test("cancels: what waits leaves no trace, what runs is interrupted, an empty body hits the task that runs", async () => {
    comfy.usual.pace = "advance";
    const ids: string[] = [];
    for (const seed of [1, 2, 3, 4]) ids.push((await queue(exampleGraph(seed))).prompt_id);
    const [first, second, third, fourth] = ids as [string, string, string, string];
    await ask("/queue", { delete: [second] });
    await ask("/interrupt", { prompt_id: third });
    comfy.advance();
    comfy.advance();
    expect(comfy.runs[0]?.state).toBe("running");
    await ask("/interrupt", { prompt_id: first });
    comfy.advance();
    await ask("/interrupt", {});
    comfy.finish();
    expect(await historyOf(second)).toBeUndefined();
    const entries = await Promise.all([first, third, fourth].map(historyOf));
    expect(entries.map(endsOf)).toEqual([
      ...["execution_interrupted", "execution_interrupted", "execution_success"],
    ]);
    expect(comfy.paid()).toEqual([first, third, fourth]);
  });

  test("a failure in a node", async () => {
    comfy.plan({ failure: { message: "Allocation on device", type: "torch.OutOfMemoryError" } });
    const { prompt_id } = await queue(exampleGraph());
    const entry = await doneEntry(prompt_id);
    expect(entry.status).toMatchObject({ status_str: "error", completed: false });
    expect(entry.status.messages.at(-1)).toMatchObject([
      ...["execution_error", { node_id: "3", node_type: "KSampler", prompt_id }],
    ]);
  });

  test("jobs tell all of it", async () => {
    comfy.usual.pace = "looks";
    const { prompt_id: id } = await queue(exampleGraph());
    const { prompt_id: next } = await queue(exampleGraph(2));
    expect(await ask(`/api/jobs/${next}`)).toMatchObject({ status: "pending" });
    expect(await ask(`/api/jobs/${id}`)).toMatchObject({ status: "in_progress" });
    expect(await ask(`/api/jobs/${next}/cancel`, {})).toMatchObject({ cancelled: true });
    const job = await until("the job", async () => {
      const found = await ask(`/api/jobs/${id}`);
      return found.status === "completed" && found;
    });
    expect(job).toMatchObject({ id, outputs_count: 1, outputs: { "9": {} } });
    expect((await fetch(`${comfy.origin}/api/jobs/${next}`)).status).toBe(404);
    expect(await ask(`/api/jobs/${next}/cancel`, {})).toMatchObject({ cancelled: false });
  });

  test("a restart forgets all but the files", async () => {
    const { prompt_id: done } = await queue(exampleGraph(1));
    await doneEntry(done);
    comfy.usual.pace = "advance";
    const { prompt_id: running } = await queue(exampleGraph(2));
    const { prompt_id: waiting } = await queue(exampleGraph(3));
    const { socket } = await listen("me");
    const closed = once(socket, "close");
    await comfy.restart();
    await closed;
    expect(await ask("/history")).toEqual({ status: 200 });
    expect(await ask("/queue")).toMatchObject({ queue_running: [], queue_pending: [] });
    expect((await fetch(`${comfy.origin}/view?filename=ccniyUI_00001_.png`)).status).toBe(200);
    expect(comfy.paid()).toEqual([done, running]);
    expect(comfy.runs.find(({ id }) => id === waiting)?.state).toBe("gone");
    comfy.usual.pace = "itself";
    const { prompt_id: again } = await queue(exampleGraph(1));
    expect((await doneEntry(again)).outputs["9"].images[0].filename).toBe("ccniyUI_00002_.png");
  });

  test("loses an answer, having queued it", async () => {
    comfy.next("submit", { kind: "lost" });
    const id = randomUUID();
    await expect(queue(exampleGraph(), { prompt_id: id })).rejects.toThrow();
    expect(endsOf(await doneEntry(id))).toBe("execution_success");
  });
});

describe("what it refuses", () => {
  test("graphs that are wrong, whole or in part", async () => {
    const without = { ...exampleGraph() };
    delete without["9"];
    expect(await queue(without)).toMatchObject({
      status: 400,
      error: { type: "prompt_no_outputs" },
    });
    expect(await ask("/prompt", {})).toMatchObject({ status: 400, error: { type: "no_prompt" } });
    const strange = { ...exampleGraph(), "1": { class_type: "Unheard", inputs: {} } };
    expect(await queue(strange)).toMatchObject({
      status: 400,
      error: { type: "missing_node_type" },
    });
    const missing: Graph = exampleGraph();
    missing["6"] = { class_type: "CLIPTextEncode", inputs: { clip: ["4", 1] } };
    expect(await queue(missing)).toMatchObject({
      ...{ status: 400, error: { type: "prompt_outputs_failed_validation" } },
      node_errors: {
        "6": { errors: [{ type: "required_input_missing" }], dependent_outputs: ["9"] },
      },
    });
    const partly: Graph = {
      ...exampleGraph(),
      "10": { class_type: "LoadImage", inputs: { image: "nothing.png" } },
      "11": { class_type: "SaveImage", inputs: { filename_prefix: "x", images: ["10", 0] } },
    };
    const { status, prompt_id, node_errors } = await queue(partly);
    expect({ status, node_errors }).toMatchObject({
      ...{ status: 200, node_errors: { "10": { dependent_outputs: ["11"] } } },
    });
    expect(Object.keys((await doneEntry(prompt_id)).outputs)).toEqual(["9"]);
  });

  test("ids that are no canonical UUID, by its age", async () => {
    const loud = { prompt_id: randomUUID().toUpperCase() };
    expect(await queue(exampleGraph(), loud)).toMatchObject({
      ...{ status: 400, error: { type: "invalid_prompt_id" } },
    });
    const newest = comfy;
    for (const vintage of ["2025", "2024"] as const) {
      await using older = await startComfy({ vintage });
      comfy = older;
      const { prompt_id } = await queue(exampleGraph(), loud);
      expect(prompt_id === loud.prompt_id).toBe(vintage === "2025");
      expect((await ask(`/api/jobs/${prompt_id}`)).status).toBe(404);
    }
    comfy = newest;
  });

  test("a foreign origin, and whom a proxy does not know", async () => {
    const headers = { origin: "http://elsewhere.example" };
    expect((await ask("/queue", undefined, { headers })).status).toBe(403);
    const stranger = new WsClient(`${comfy.origin.replace("http", "ws")}/ws`, { headers });
    const [refusal] = await once(stranger, "error");
    expect(String(refusal)).toContain("403");
    await using guarded = await startComfy({ key: "proxy" });
    expect((await fetch(`${guarded.origin}/queue`)).status).toBe(401);
    const allowed = { authorization: "Bearer proxy" };
    expect((await fetch(`${guarded.origin}/queue`, { headers: allowed })).status).toBe(200);
  });
});

describe("files", () => {
  const upload = async (bytes: Uint8Array, fields: Record<string, string> = {}) => {
    const form = new FormData();
    form.set("image", new File([new Uint8Array(bytes)], "boat.png", { type: "image/png" }));
    for (const [key, value] of Object.entries(fields)) form.set(key, value);
    return ask("/upload/image", undefined, { method: "POST", body: form });
  };

  test("uploads: equal bytes keep the name, others get a number, unless they overwrite", async () => {
    const png = comfy.outputs.images[0] as Buffer;
    const other = Buffer.concat([png, Buffer.from("x")]);
    const named = (name: string, subfolder = "") => ({
      status: 200,
      name,
      subfolder,
      type: "input",
    });
    expect(await upload(png)).toEqual(named("boat.png"));
    expect(await upload(png)).toEqual(named("boat.png"));
    expect(await upload(other)).toEqual(named("boat (1).png"));
    expect(await upload(other)).toEqual(named("boat (1).png"));
    expect(await upload(other, { overwrite: "true" })).toEqual(named("boat.png"));
    expect(await upload(png, { subfolder: "genmesh" })).toEqual(named("boat.png", "genmesh"));
    expect((await upload(png, { subfolder: "../x" })).status).toBe(400);
    const graph: Graph = {
      "1": { class_type: "LoadImage", inputs: { image: "genmesh/boat.png" } },
      "2": { class_type: "SaveImage", inputs: { filename_prefix: "sub/x", images: ["1", 0] } },
    };
    const { prompt_id } = await queue(graph);
    expect((await doneEntry(prompt_id)).outputs["2"].images).toMatchObject([{ subfolder: "sub" }]);
    expect(comfy.runs[0]?.references).toEqual([{ at: "1.image", bytes: png }]);
  });

  test("a film from a picture, as Wan's template makes it", async () => {
    await upload(comfy.outputs.images[0] as Buffer);
    const size = { width: 832, height: 480, length: 81, batch_size: 1 };
    const links = {
      positive: ["6", 0],
      negative: ["7", 0],
      vae: ["39", 0],
      start_image: ["52", 0],
    };
    const sampling = { seed: 3, steps: 20, cfg: 6, sampler_name: "euler", scheduler: "simple" };
    const sampled = { model: ["54", 0], positive: ["50", 0], negative: ["50", 1] };
    const graph: Graph = {
      "37": {
        class_type: "UNETLoader",
        inputs: { unet_name: "wan.safetensors", weight_dtype: "default" },
      },
      "38": { class_type: "CLIPLoader", inputs: { clip_name: "umt5.safetensors", type: "wan" } },
      "39": { class_type: "VAELoader", inputs: { vae_name: "wan_vae.safetensors" } },
      "6": { class_type: "CLIPTextEncode", inputs: { clip: ["38", 0], text: "a boat sails" } },
      "7": { class_type: "CLIPTextEncode", inputs: { clip: ["38", 0], text: "" } },
      "52": { class_type: "LoadImage", inputs: { image: "boat.png" } },
      "54": { class_type: "ModelSamplingSD3", inputs: { model: ["37", 0], shift: 8 } },
      "50": { class_type: "WanImageToVideo", inputs: { ...links, ...size } },
      "3": {
        class_type: "KSampler",
        inputs: { ...sampling, ...sampled, latent_image: ["50", 2], denoise: 1 },
      },
      "8": { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["39", 0] } },
      "57": { class_type: "CreateVideo", inputs: { images: ["8", 0], fps: 16 } },
      "58": {
        class_type: "SaveVideo",
        inputs: { video: ["57", 0], filename_prefix: "video/wan", format: "auto" },
      },
    };
    const { prompt_id, node_errors } = await queue(graph);
    expect(node_errors).toEqual({});
    expect((await doneEntry(prompt_id)).outputs["58"].images).toMatchObject([
      { filename: "wan_00001_.mp4", subfolder: "video", type: "output" },
    ]);
  });

  test("films, sounds, several pictures, and how they are had", async () => {
    const graph = exampleGraph();
    graph["5"] = {
      class_type: "EmptyLatentImage",
      inputs: { batch_size: 3, height: 64, width: 64 },
    };
    graph["10"] = { class_type: "CreateVideo", inputs: { images: ["8", 0], fps: 16 } };
    const save = { filename_prefix: "video/x", format: "auto", codec: "auto" };
    graph["58"] = { class_type: "SaveVideo", inputs: { video: ["10", 0], ...save } };
    graph["20"] = { class_type: "VAEDecodeAudio", inputs: { samples: ["3", 0], vae: ["4", 2] } };
    const sound = { audio: ["20", 0], filename_prefix: "audio/x", quality: "V0" };
    graph["21"] = { class_type: "SaveAudioMP3", inputs: sound };
    const { prompt_id } = await queue(graph);
    const { outputs } = await doneEntry(prompt_id);
    expect(outputs["9"].images).toHaveLength(3);
    expect(outputs["58"]).toMatchObject({
      ...{ images: [{ filename: "x_00001_.mp4", subfolder: "video" }], animated: [true] },
    });
    expect(outputs["21"].audio).toMatchObject([{ filename: "x_00001_.mp3" }]);
    const view = `${comfy.origin}/api/view?${new URLSearchParams(outputs["58"].images[0])}`;
    const part = await fetch(view, { headers: { range: "bytes=4-7" } });
    expect([part.status, await part.text()]).toEqual([206, "ftyp"]);
    comfy.next("view", { kind: "file", cutAfter: 10 });
    await expect(fetch(view).then((answer) => answer.bytes())).rejects.toThrow();
    for (const [query, status] of [
      ["filename=../x", 400],
      ["filename=none", 404],
      ["", 404],
    ] as const)
      expect((await fetch(`${comfy.origin}/view?${query}`)).status).toBe(status);
    expect(await ask("/object_info/SaveVideo")).toMatchObject({ SaveVideo: { output_node: true } });
  });
});
