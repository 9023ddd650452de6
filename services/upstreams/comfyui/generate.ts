// The driver for images, video and music by a ComfyUI server. `task.ts` looks at a task and cancels it.

import { randomUUID } from "node:crypto";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { enqueue } from "../by-template/begin.ts";
import { callOf, inputOf } from "../by-template/call.ts";
import { placeReferences } from "../by-template/references.ts";
import { checkedTaskId } from "../media/begin.ts";
import type { DriverContext } from "../media/context.ts";
import { jsonBody, urlOf } from "../media/exchange.ts";
import { failed } from "../media/faults.ts";
import { fetchOutput } from "../media/fetch-output.ts";
import { generateTimes, generateTries } from "../media/limits.ts";
import { takeReferenceRoom } from "../media/memory.ts";
import { type GeneratedOutput, GenerationError, type GenerationTask } from "../media/port.ts";
import { type Graph, placeOf, readGraph } from "./catalog.ts";
import { openProgress, type Progress } from "./progress.ts";
import { uploadToComfyUi } from "./references.ts";
import { cancelAtComfyUi, createTaskAsker, type TaskState } from "./task.ts";

/**
 * Generates at a ComfyUI server. It puts the graph of the catalog's workflow, with the job's values, into the queue, unless it is there
 * already. It watches the task, and stores the files that the workflow's output node has saved.
 *
 * We choose the task's id and store it before the graph is sent. So a later attempt finds the task in the queue or the history even
 * where the answer was lost. A task in neither is sent again: the server has been restarted or never had it.
 */
export async function generateAtComfyUi(
  context: DriverContext,
  task: GenerationTask,
): Promise<GeneratedOutput[]> {
  const graph = graphOf(task);
  const asker = createTaskAsker(context, task);
  const id = task.resumeId ?? randomUUID();
  const found: TaskState = task.resumeId === undefined ? { at: "nowhere" } : await asker.state(id);
  const nodes = Object.keys(graph).length;
  using progress = await openProgress(context, task, { clientId: id, nodes });
  const known = await knownId(context, task, { graph, id, found });
  const entry =
    found.at === "end" ? found.entry : await untilEnded(() => asker.state(known), progress);
  return outputsOf(context, task, entry);
}

/** The graph of the task's workflow, from the catalog. */
function graphOf(task: GenerationTask): Graph {
  const read = readGraph(callOf(task).workflow);
  if ("fault" in read) throw failed("the job's call has no workflow");
  return read.graph;
}

/** The server's id of the task. Puts the task into its queue where it is not there. */
async function knownId(
  context: DriverContext,
  task: GenerationTask,
  { graph, id, found }: { graph: Graph; id: string; found: TaskState },
): Promise<string> {
  if (found.at === "end") return id;
  const known = found.at === "nowhere" ? await submit(context, task, graph, id) : found.id;
  // A server of 2024 gives the task another id.
  if (known !== id) await task.saveResumeId(known);
  return known;
}

async function submit(
  context: DriverContext,
  task: GenerationTask,
  graph: Graph,
  id: string,
): Promise<string> {
  const { upstream, signal } = task;
  using room = await takeReferenceRoom(context.memory, task);
  const names = await placeReferences(context, task, {
    // Nodes load only files of the server.
    inlineBytes: 0,
    upload: (reference) => uploadToComfyUi(context, task, reference),
  });
  room[Symbol.dispose]();
  const prompt = withInput(graph, inputOf(task, names));
  const { headers = {}, body = "" } = jsonBody({ prompt, client_id: id, prompt_id: id });
  if (task.resumeId === undefined) await task.saveResumeId(id);
  const call = { url: urlOf(upstream, "/prompt"), headers, body };
  const reply = await enqueue(context, task, call);
  const known = checkedTaskId(reply.body.prompt_id);
  const { node_errors: errors } = reply.body;
  if (isJsonObject(errors) && Object.keys(errors).length > 0) {
    // Nodes that passed the check would run, and the others are left out without an error.
    const { jobId, upstreamModel } = task;
    const kind = task.request.kind;
    const wanted = { jobId, kind, upstreamModel, upstream, resumeId: known, signal };
    await cancelAtComfyUi(context, wanted).catch(() => signal.throwIfAborted());
    throw failed("nodes of the workflow do not pass the upstream's validation");
  }
  return known;
}

/** The graph with values at the inputs that the call names. An input without a value keeps the file's. */
function withInput(graph: Graph, input: JsonObject): JsonObject {
  const filled: JsonObject = { ...graph };
  for (const [key, value] of Object.entries(input)) {
    const place = placeOf(key);
    const node = place && filled[place.node];
    if (!place || !isJsonObject(node)) throw failed("the job's call does not fit its workflow");
    const inputs = { ...(isJsonObject(node.inputs) ? node.inputs : {}), [place.input]: value };
    filled[place.node] = { ...node, inputs };
  }
  return filled;
}

/**
 * Looks again and again, and at once where the server reports that the task is over. Resolves with its entry in the history. A task
 * that one look does not find may be there at the next: it was just sent, or a proxy has answered.
 */
async function untilEnded(look: () => Promise<TaskState>, progress: Progress): Promise<JsonObject> {
  let pauseMs: number = generateTimes.firstPauseMs;
  let missed = 0;
  for (;;) {
    await progress.overWithin(pauseMs);
    const state = await look();
    if (state.at === "end") return state.entry;
    missed = state.at === "nowhere" ? missed + 1 : 0;
    if (missed === generateTries.nowhere) {
      throw new GenerationError("broke_off", "the upstream knows the task no more");
    }
    pauseMs = Math.min(pauseMs * 1.5, generateTimes.longestPauseMs);
  }
}

async function outputsOf(
  context: DriverContext,
  task: GenerationTask,
  { status, outputs }: JsonObject,
): Promise<GeneratedOutput[]> {
  if (isJsonObject(status) && status.status_str === "error") throw executionFailure(status);
  const { request } = task;
  const count = request.kind === "image" ? request.count : 1;
  const made = isJsonObject(outputs) ? outputs[callOf(task).output] : undefined;
  const files = isJsonObject(made) ? Object.values(made).flat().filter(isFile) : [];
  if (files.length < count) throw failed("the upstream made too few outputs");
  const stored: GeneratedOutput[] = [];
  for (const { filename, subfolder = "", type = "output" } of files.slice(0, count)) {
    const query = new URLSearchParams({ filename, subfolder, type });
    stored.push(await fetchOutput(context, task, { url: urlOf(task.upstream, `/view?${query}`) }));
  }
  return stored;
}

/** An output node's description of a file. It is under `images`, `gifs`, `audio` or `video`, beside lists of other things. */
interface SavedFile extends JsonObject {
  filename: string;
}

function isFile(value: unknown): value is SavedFile & { subfolder?: string; type?: string } {
  if (!isJsonObject(value)) return false;
  const { filename, subfolder = "", type = "" } = value;
  return [filename, subfolder, type].every((part) => typeof part === "string");
}

/** A node failed, or an operator interrupted the task. The same graph would fail again, or is not wanted. */
function executionFailure({ messages }: JsonObject): GenerationError {
  const ends = Array.isArray(messages) ? messages.filter(Array.isArray) : [];
  const [event, about] = ends.at(-1) ?? [];
  if (event === "execution_interrupted") return failed("the upstream's task was interrupted");
  const type = isJsonObject(about) ? about.exception_type : undefined;
  const cause = new NodeFailedError(typeof type === "string" ? type : "");
  return failed("a node of the workflow failed", { cause });
}

/** A node raised an exception. Its class is kept for the log, its text is not. */
class NodeFailedError extends Error {
  override readonly name = "NodeFailedError";
  readonly code: string | undefined;
  constructor(type: string) {
    super("a node failed");
    this.code = /^[\w.]{1,64}$/.test(type) ? type : undefined;
  }
}
