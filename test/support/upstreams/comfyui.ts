import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { MediaOutputs } from "../scripted-media-upstream.ts";
import type { SeenRequest } from "../scripted-upstream.ts";
import {
  type Disk,
  readInput,
  saveOutput,
  takeUpload,
  uploadBytes,
  viewFile,
} from "./comfyui-disk.ts";
import { type Graph, nodeClasses, objectInfo, validateGraph } from "./comfyui-nodes.ts";
import {
  type ComfyPlan,
  type Engine,
  execute,
  type HistoryEntry,
  type Run,
} from "./comfyui-run.ts";
import { comfySockets } from "./comfyui-socket.ts";
import {
  type Answer,
  type Double,
  type Reference,
  type Route,
  reply,
  replyText,
  sampleOutputs,
  startDouble,
} from "./double.ts";

/**
 * A ComfyUI server. It runs one graph at a time. Its queue, history and cache are in memory, and its files on a disk that restarts do not
 * change.
 *
 * From Comfy-Org/ComfyUI:
 * * server.py: every route, each under /api too, `/ws`, the name of an upload, `/view`, the check of `prompt_id`.
 * * middleware/origin_middleware.py: the check of an `Origin`. execution.py (`PromptQueue`): the results of a delete and a restart.
 * * comfy_execution/jobs.py: `/api/jobs`. main.py: `executing` without a node after the entry in the history.
 *
 * "2025" has no /api/jobs and takes any text as an id. "2024" ignores the caller's id and interrupts the running task, like server.py of
 * comfyanonymous/ComfyUI 005f3ba.
 * The server has no keys of its own. `key` is the key of a proxy in front of it.
 */
export interface ComfyDouble extends Double<ComfyRoute> {
  outputs: MediaOutputs;
  /** All queued prompts in the order of arrival, including those whose answer was lost. An id may be in the list twice. */
  runs: ComfyRun[];
  /** Files by `output/sub/name`. */
  disk: Disk;
  /** The ids of the clients whose WebSockets are open. */
  clients(): string[];
  /** Breaks every WebSocket without a closing message. */
  dropSockets(): void;
  /**
   * The treatment of prompts for which {@link plan} has no entry. A test may change it at any time. `of` chooses by the graph, before all
   * else.
   */
  usual: ComfyPlan & { of?: (graph: Graph) => Partial<ComfyPlan> };
  /** The treatments of the next prompts, one each. Later prompts get the usual one. */
  plan(...plans: Partial<ComfyPlan>[]): void;
  /** Takes the running prompt one step further. Without one it does nothing. */
  advance(): void;
  /** Runs everything in the queue to its end. */
  finish(): void;
  /** The process is killed and restarted. Queue, history, cache and temporary files are gone, and connections are destroyed. */
  restart(): Promise<void>;
  /** The ids of graphs that took or will take the GPU's time: started ones and waiting ones. */
  paid(): string[];
}

export type ComfyRoute =
  | "submit"
  | "queueInfo"
  | "history"
  | "historyAll"
  | "historyPost"
  | "queue"
  | "queuePost"
  | "interrupt"
  | "job"
  | "jobs"
  | "jobCancel"
  | "view"
  | "upload"
  | "info"
  | "classInfo"
  | "features";

export interface ComfyRun extends Run {
  references: Reference[];
  /** `gone`: it left the queue before its start. `lost`: it ran when the process was killed. */
  state: "pending" | "running" | "ended" | "gone" | "lost";
}

export interface ComfyOptions {
  port?: number;
  vintage?: "2026" | "2025" | "2024";
  key?: string | undefined;
}

const usualPlan: ComfyPlan = { pace: "itself", steps: 4, failure: undefined };

/** Starts a server on a free loopback port (or on `port`). */
export async function startComfy({
  port = 0,
  vintage = "2026",
  key,
}: ComfyOptions = {}): Promise<ComfyDouble> {
  const outputs = await sampleOutputs();
  const disk: Disk = new Map();
  const runs: ComfyRun[] = [];
  const usual: ComfyDouble["usual"] = { ...usualPlan };
  const plans: Partial<ComfyPlan>[] = [];
  let pending: ComfyRun[] = [];
  let history = new Map<string, HistoryEntry>();
  let current: { run: ComfyRun; steps: Generator<void, HistoryEntry, void> } | undefined;
  let isInterrupted = false;
  let number = 0;

  const allows = (headers: IncomingMessage["headers"]) => {
    if (key !== undefined && headers.authorization !== `Bearer ${key}`) return 401;
    const { origin, host } = headers;
    return origin !== undefined && new URL(origin).host !== host ? 403 : 200;
  };
  const queueInfo = () => ({ exec_info: { queue_remaining: pending.length + (current ? 1 : 0) } });
  const sockets = comfySockets(allows, queueInfo);
  const tellQueue = () => sockets.send("status", { status: queueInfo() }, undefined);
  const engine: Engine = {
    cache: new Map(),
    send: sockets.send,
    takeInterrupt: () => {
      const was = isInterrupted;
      isInterrupted = false;
      return was;
    },
    sendPreview: ({ id, clientId }, node) =>
      sockets.sendPreview(
        clientId,
        { node_id: node, prompt_id: id },
        outputs.images[0] ?? new Uint8Array(),
      ),
    save: ({ graph }, node, saves) => saveOutput(disk, outputs, graph, node, saves),
  };

  const startNext = () => {
    if (current) return;
    const run = pending.toSorted((a, b) => a.number - b.number)[0];
    if (!run) return;
    pending = pending.filter((one) => one !== run);
    run.state = "running";
    isInterrupted = false;
    current = { run, steps: execute(run, engine) };
    tellQueue();
    if (run.plan.pace === "itself") drive(current);
  };
  const drive = (mine: typeof current) => {
    setImmediate(() => {
      if (current !== mine) return;
      advance();
      drive(mine);
    });
  };
  const advance = () => {
    if (!current) return;
    const { run, steps } = current;
    const step = steps.next();
    if (!step.done) return;
    current = undefined;
    run.state = "ended";
    history.set(run.id, step.value);
    tellQueue();
    if (run.clientId !== undefined)
      sockets.send("executing", { node: null, prompt_id: run.id }, run.clientId);
    startNext();
  };
  const look = () => {
    if (current?.run.plan.pace === "looks") advance();
  };
  const drop = (isDropped: (run: ComfyRun) => boolean) => {
    for (const run of pending.filter(isDropped)) run.state = "gone";
    pending = pending.filter((run) => run.state !== "gone");
    tellQueue();
  };
  const cancelPending = (id: string) => {
    const first = pending.find((run) => run.id === id);
    if (first) drop((run) => run === first);
    return first !== undefined;
  };
  const itemOf = ({ number, id, graph, extra, outputs }: Run) => [
    number,
    id,
    graph,
    extra,
    outputs,
  ];
  const submit = ({ body }: SeenRequest): Answer => {
    if (typeof body !== "object" || body === null)
      return replyText(500, "500 Internal Server Error");
    if (!body.prompt) return refusal("no_prompt", "No prompt provided", "No prompt provided");
    const asked = vintage === "2024" ? undefined : body.prompt_id;
    if (vintage === "2026" && asked != null && !isCanonicalUuid(asked))
      return refusal(
        ...(["invalid_prompt_id", "prompt_id must be a valid UUID"] as const),
        "prompt_id must be a UUID string in canonical lowercase hyphenated form; omit it to let the server generate one",
      );
    const graph: Graph = body.prompt;
    const valid = validateGraph(graph, (name) => readInput(disk, name) !== undefined);
    if (valid.error) return reply(400, { error: valid.error, node_errors: valid.errors });
    const own = body.number ?? (body.front ? -number : number);
    number++;
    const run: ComfyRun = {
      ...{ id: asked ?? randomUUID(), number: own, graph, outputs: valid.outputs },
      ...{ clientId: body.client_id, state: "pending" },
      plan: { ...usual, ...plans.shift(), ...usual.of?.(graph) },
      extra: { ...body.extra_data, client_id: body.client_id, create_time: Date.now() },
      references: Object.entries(graph).flatMap(([node, { class_type, inputs }]) => {
        const bytes =
          class_type === "LoadImage" ? readInput(disk, String(inputs.image)) : undefined;
        return bytes ? [{ at: `${node}.image`, bytes }] : [];
      }),
    };
    runs.push(run);
    pending.push(run);
    tellQueue();
    startNext();
    return reply(200, { prompt_id: run.id, number: own, node_errors: valid.errors });
  };
  const jobOf = (id: string) => {
    const ended = history.get(id);
    if (ended) return jobOfHistory(id, ended);
    const run = current?.run.id === id ? current.run : pending.find((one) => one.id === id);
    if (!run) return undefined;
    const status = run === current?.run ? "in_progress" : "pending";
    const { number: priority, extra, graph } = run;
    const times = { create_time: extra.create_time, outputs_count: 0 };
    return { id, status, priority, ...times, workflow: { prompt: graph, extra_data: extra } };
  };
  const cancel = (id: string) => {
    if (current?.run.id === id) isInterrupted = true;
    else return cancelPending(id);
    return true;
  };

  const at = (path: string) => new RegExp(`^(?:/api)?${path}$`);
  const routes: Route<ComfyRoute>[] = [
    { ...{ name: "submit", method: "POST", path: at("/prompt") }, answer: submit },
    {
      ...{ name: "queueInfo", method: "GET", path: at("/prompt") },
      answer: () => reply(200, queueInfo()),
    },
    {
      ...{ name: "history", method: "GET", path: at("/history/([^/]+)") },
      answer: (_seen, [id = ""]) => {
        look();
        const ended = history.get(id);
        return reply(200, ended ? { [id]: ended } : {});
      },
    },
    {
      ...{ name: "historyAll", method: "GET", path: at("/history") },
      answer: ({ query }) => {
        const newest = Number(query.get("max_items") ?? history.size);
        return reply(200, Object.fromEntries([...history].slice(-newest)));
      },
    },
    {
      ...{ name: "historyPost", method: "POST", path: at("/history") },
      answer: ({ body }) => {
        if (body?.clear) history.clear();
        for (const id of body?.delete ?? []) history.delete(id);
        return replyText(200);
      },
    },
    {
      ...{ name: "queue", method: "GET", path: at("/queue") },
      answer: () => {
        look();
        const running = current ? [itemOf(current.run)] : [];
        return reply(200, { queue_running: running, queue_pending: pending.map(itemOf) });
      },
    },
    {
      ...{ name: "queuePost", method: "POST", path: at("/queue") },
      answer: ({ body }) => {
        if (body?.clear) drop(() => true);
        // One prompt of each id, although the same may wait twice.
        for (const id of body?.delete ?? []) cancelPending(id);
        return replyText(200);
      },
    },
    {
      ...{ name: "interrupt", method: "POST", path: at("/interrupt") },
      answer: ({ body }) => {
        const id = vintage === "2024" ? undefined : body?.prompt_id;
        if (!id || current?.run.id === id) isInterrupted = true;
        return replyText(200);
      },
    },
    {
      ...{ name: "view", method: "GET", path: at("/view") },
      answer: ({ query }) => viewFile(disk, query),
    },
    {
      ...{ name: "upload", method: "POST", path: at("/upload/image") },
      answer: (seen) => takeUpload(disk, seen),
    },
    {
      ...{ name: "info", method: "GET", path: at("/object_info") },
      answer: () =>
        reply(
          200,
          Object.fromEntries(Object.keys(nodeClasses).map((name) => [name, objectInfo(name)])),
        ),
    },
    {
      ...{ name: "classInfo", method: "GET", path: at("/object_info/([^/]+)") },
      answer: (_seen, [name = ""]) =>
        reply(200, nodeClasses[name] ? { [name]: objectInfo(name) } : {}),
    },
  ];
  const jobRoutes: Route<ComfyRoute>[] = [
    {
      ...{ name: "features", method: "GET", path: at("/features") },
      answer: () => reply(200, { supports_preview_metadata: true, max_upload_size: uploadBytes }),
    },
    {
      ...{ name: "job", method: "GET", path: /^\/api\/jobs\/([^/]+)$/ },
      answer: (_seen, [id = ""]) => {
        look();
        const job = jobOf(id);
        return job ? reply(200, job) : reply(404, { error: "Job not found" });
      },
    },
    {
      ...{ name: "jobCancel", method: "POST", path: /^\/api\/jobs\/([^/]+)\/cancel$/ },
      answer: (_seen, [id = ""]) => reply(200, { cancelled: cancel(id) }),
    },
  ];

  const double = await startDouble(vintage === "2026" ? [...jobRoutes, ...routes] : routes, {
    ...{ port, onUpgrade: sockets.onUpgrade, unknown: replyText(404, "404: Not Found") },
    guard: ({ headers }) => {
      const status = allows(headers);
      return status === 200 ? undefined : replyText(status);
    },
  });
  return {
    ...double,
    ...{ outputs, runs, disk, usual, advance, clients: sockets.clients },
    dropSockets: sockets.drop,
    plan: (...more) => void plans.push(...more),
    finish: () => {
      while (current) advance();
    },
    restart: async () => {
      await double.stop();
      for (const run of runs)
        if (run.state !== "ended") run.plan = { ...run.plan, pace: "advance" };
      for (const run of pending) run.state = "gone";
      pending = [];
      current = undefined;
      history = new Map();
      engine.cache.clear();
      number = 0;
      for (const path of disk.keys()) if (path.startsWith("temp/")) disk.delete(path);
      await double.start();
    },
    paid: () => runs.filter(({ state }) => state !== "gone").map(({ id }) => id),
  };
}

function jobOfHistory(id: string, { prompt, outputs, status }: HistoryEntry): object {
  const isInterrupted = status.messages.some(([event]) => event === "execution_interrupted");
  const failed = isInterrupted ? "cancelled" : "failed";
  const items = Object.values(outputs).flatMap((node) => Object.values(node).flat());
  const error = status.messages.find(([event]) => event === "execution_error")?.[1];
  return {
    ...{ id, status: status.status_str === "success" ? "completed" : failed, priority: prompt[0] },
    outputs_count: items.filter((item) => typeof item === "object").length,
    ...(error && { execution_error: error }),
    ...{ outputs, execution_status: status },
    workflow: { prompt: prompt[2], extra_data: prompt[3] },
  };
}

function refusal(type: string, message: string, details: string): Answer {
  return reply(400, { error: { type, message, details, extra_info: {} }, node_errors: {} });
}

function isCanonicalUuid(id: unknown): boolean {
  return typeof id === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id);
}
