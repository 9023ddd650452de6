// The driver for images, video and music by an upstream whose HTTP the catalog declares.

import type { JsonObject } from "#kit/base/json.ts";
import { inputOf } from "../by-template/call.ts";
import { outputsOf } from "../by-template/outputs.ts";
import { dataUri } from "../by-template/references.ts";
import { begin } from "../media/begin.ts";
import type { DriverContext } from "../media/context.ts";
import { bodyOf, type OwnKey } from "../media/download.ts";
import { type Call, exchange } from "../media/exchange.ts";
import { failed, isLateFile, StatusError, unknown } from "../media/faults.ts";
import { fetchOutputs } from "../media/fetch-output.ts";
import { createFileAnswers } from "../media/file-answers.ts";
import { generateLimits, generateTimes } from "../media/limits.ts";
import { loadReferences } from "../media/load-references.ts";
import { takeReferenceRoom } from "../media/memory.ts";
import {
  type GeneratedOutput,
  GenerationError,
  type GenerationTask,
  NotTakenError,
} from "../media/port.ts";
import { spool } from "../media/spool.ts";
import { storeImage, storeStream, streamedOutput } from "../media/store-output.ts";
import { declarationOf, isNamedByUs } from "./abilities.ts";
import { meaningOf } from "./answers.ts";
import { ask, callOfStep, type Declared, storedValues, takenOf } from "./ask.ts";
import { authHeaders } from "./auth.ts";
import { type Declaration, type Meaning, meanings } from "./declaration.ts";
import { declaredHeaders } from "./headers.ts";
import { isOwnOrigin, type PathValues } from "./paths.ts";
import { errorOf, resultOf, watchDeclared } from "./watch.ts";

/**
 * Generates at an upstream whose HTTP the catalog declares. It begins a task (unless an earlier attempt has), looks until the task is done,
 * and stores its outputs.
 */
export async function generateByDeclaration(
  context: DriverContext,
  task: GenerationTask,
): Promise<GeneratedOutput[]> {
  const { upstream, signal } = task;
  const declaration = declarationOf(upstream);
  const declared: Declared = { upstream, declaration, values: knownValues(task), signal };
  if (!declaration.poll) {
    if (declaration.create.gives === "file") return await fileOfCreate(context, task, declared);
    const answer = await create(context, task, declared);
    return await outputsIn(context, task, declared, answer);
  }
  const { declared: begun, answer } = await untilDone(context, task, declared);
  try {
    return await outputsIn(context, task, begun, answer);
  } catch (error) {
    task.signal.throwIfAborted();
    // The links of an answer end. Another look gives fresh ones.
    if (!(error instanceof GenerationError && isLateFile(error.cause))) throw error;
    const again = await watched(context, task, begun);
    return await outputsIn(context, task, again.declared, again.answer);
  }
}

/** The values that paths may name before the upstream has answered, or as an earlier attempt stored them. */
function knownValues({ jobId, call, resumeId }: GenerationTask): PathValues {
  const stored = resumeId === undefined ? {} : storedValues(resumeId);
  return { model: call?.model ?? "", job: jobId, ...stored };
}

/** A task's answer once it is done, and its upstream with all values. */
interface Ended {
  declared: Declared;
  answer: JsonObject;
}

async function untilDone(
  context: DriverContext,
  task: GenerationTask,
  declared: Declared,
): Promise<Ended> {
  if (isNamedByUs(declared.declaration)) {
    if (task.resumeId !== undefined) {
      const found = await watchDeclared(context, task, declared, true);
      if (found !== "nowhere") return ended(context, declared, found);
    } else {
      await task.saveResumeId(asResumeId(declared.values));
    }
    await create(context, task, declared);
    return await watched(context, task, declared);
  }
  if (task.resumeId !== undefined) return await watched(context, task, declared);
  const answer = await create(context, task, declared);
  const values = {
    ...declared.values,
    ...takenOf(declared.declaration.create.take, answer),
  };
  await task.saveResumeId(asResumeId(values));
  return await watched(context, task, { ...declared, values });
}

/** Characters of what is stored of a task: three ids of the longest allowed, and the model's name. */
const storedCharacters = 1_000;

/** The names of a task, in the form in which they are stored at once. */
function asResumeId({ job: _, ...values }: PathValues): string {
  const id = JSON.stringify(values);
  if (id.length > storedCharacters) throw failed("the upstream's answer names no task");
  return id;
}

async function watched(
  context: DriverContext,
  task: GenerationTask,
  declared: Declared,
): Promise<Ended> {
  const found = await watchDeclared(context, task, declared);
  if (found === "nowhere") throw failed("the upstream does not know the task");
  return ended(context, declared, found);
}

/** Asks for the result, where the upstream gives it apart from the state. */
async function ended(
  context: DriverContext,
  declared: Declared,
  answer: JsonObject,
): Promise<Ended> {
  const { poll, result } = declared.declaration;
  const values = { ...declared.values, ...takenOf(poll?.take, answer) };
  const known = { ...declared, values };
  if (!result || result.gives === "file") return { declared: known, answer };
  return { declared: known, answer: await resultOf(context, known, result) };
}

/** Sends the request that begins the task, once, and resolves with its answer. */
async function create(
  context: DriverContext,
  task: GenerationTask,
  declared: Declared,
): Promise<JsonObject> {
  const { answers } = declared.declaration;
  return await creating(context, task, declared, async (call) => {
    const { body, status } = await ask(context, call);
    const refusal = errorOfCreate(meaningOf(answers, meanings, body), new StatusError(status));
    if (refusal) throw refusal;
    return body;
  });
}

/** The answer to the request is the file itself. */
async function fileOfCreate(
  context: DriverContext,
  task: GenerationTask,
  declared: Declared,
): Promise<GeneratedOutput[]> {
  const { request } = task;
  return await creating(context, task, declared, async (call) => {
    const reply = await exchange(context, { ...call, accept: "*/*" });
    try {
      if (reply.status >= 300) throw new StatusError(reply.status);
      if (request.kind === "image") {
        const maxBytes = generateLimits.imageBytes;
        await using spooled = await spool(context, task, bodyOf(reply, maxBytes), { maxBytes });
        using loaded = await spooled.load();
        return [await storeImage(context, task, loaded.bytes)];
      }
      const output = streamedOutput(request);
      return [await storeStream(task, output, bodyOf(reply, output.maxBytes))];
    } finally {
      reply.body.close();
    }
  });
}

/** Makes the request with its references, and maps each refusal of it. */
async function creating<T>(
  context: DriverContext,
  task: GenerationTask,
  declared: Declared,
  send: (call: Call) => Promise<T>,
): Promise<T> {
  const { create, poll } = declared.declaration;
  using room = await takeReferenceRoom(context.memory, task);
  const references = (await loadReferences(task.references, task.signal)).map(dataUri);
  const call: Call = {
    ...(await callOfStep(context, declared, create, inputOf(task, references))),
    once: create.key === undefined,
    refusal: refusalOf(declared.declaration),
    // Where there is no task to look at, the answer comes when everything is made.
    ...(poll ? { timeoutMs: generateTimes.submitMs } : {}),
  };
  const { key } = create;
  const keyed = key === undefined ? {} : { [key.toLowerCase()]: task.idempotencyKey };
  const request = { ...call, headers: { ...call.headers, ...keyed } };
  return await begin(task, { takesKey: false }, async () => {
    try {
      return await send(request);
    } catch (error) {
      // The upstream may have begun the task before it failed.
      const isOpen = error instanceof StatusError && error.status === 500;
      throw isOpen ? unknown(error.message, { cause: error }) : error;
    } finally {
      room[Symbol.dispose]();
    }
  });
}

/** Meanings of a failed request. All of them say that nothing was taken. Anything else in its body may be wrong. */
const ofFailures = ["empty", "busy", "denied"] as const;

/** The error of a refusal of the beginning request. Without a mark its status decides. */
function refusalOf({ answers }: Declaration): NonNullable<Call["refusal"]> {
  return (status, body, error) => {
    const isOpen = [408, 409, 425].includes(status);
    const among = status >= 500 ? ofFailures : isOpen ? [] : meanings;
    return errorOfCreate(meaningOf(answers, among, body), error);
  };
}

/** The error of the beginning request, by the meaning of its answer. Undefined: the answer has none. */
function errorOfCreate(
  meaning: Meaning | undefined,
  cause: StatusError,
): GenerationError | undefined {
  const details = { isCertain: true, cause, retryAfterMs: cause.retryAfterMs };
  switch (meaning) {
    case undefined:
      return undefined;
    case "refused":
    case "failed":
      return errorOf(meaning);
    case "empty":
      return new NotTakenError("account_empty", details);
    case "busy":
      return new NotTakenError("too_many_requests", details);
    case "denied":
      return new NotTakenError("denied", details);
    case "unsure":
      return unknown("the upstream does not say whether it took the job", { cause });
  }
}

/** Stores the outputs that an answer names. Files of the upstream's own origins get its key where it wants that. */
async function outputsIn(
  context: DriverContext,
  task: GenerationTask,
  declared: Declared,
  answer: JsonObject,
): Promise<GeneratedOutput[]> {
  const { upstream, declaration } = declared;
  const { origins, download, result } = declaration;
  const own: OwnKey = {
    isFor: (url) => isOwnOrigin(url, upstream.baseUrl, origins),
    headers: async () => ({
      ...declaredHeaders(declaration),
      ...(await authHeaders(context, upstream, declaration)),
    }),
  };
  using answers = createFileAnswers(context, task);
  if (result?.gives === "file") {
    const { url } = await callOfStep(context, declared, result);
    return await fetchOutputs(context, task, answers, [{ url, key: own }]);
  }
  const key = download === "key" ? own : "none";
  return await outputsOf(context, task, answer, answers, key);
}
