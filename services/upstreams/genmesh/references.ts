// Uploads reference images to another genmesh before a job is submitted there, and deletes them behind it.

import { encodeForm } from "../form.ts";
import { checkedTaskId } from "../media/begin.ts";
import type { DriverContext } from "../media/context.ts";
import { leftBehind } from "../media/events.ts";
import { exchange, exchangeJson, urlOf } from "../media/exchange.ts";
import { errorBeforeBeginning, errorOfBeginning, isWorthRepeating } from "../media/faults.ts";
import { generateLimits, generateTimes, generateTries } from "../media/limits.ts";
import { type LoadedReference, loadReferences } from "../media/load-references.ts";
import { takeReferenceRoom } from "../media/memory.ts";
import type { GenerationTask } from "../media/port.ts";
import { withTries } from "../media/retries.ts";

/** References in the file storage of another deployment. */
export interface UploadedReferences {
  /** In the order of the task's references. */
  fileIds: readonly string[];
  /** Deletes them there. Where that fails, they stay. Rejects only with the signal's reason. */
  remove(): Promise<void>;
}

/**
 * Uploads a task's references, each under its own idempotency key. A repeat names the same files, so the job's body stays the same. A
 * body that holds all of them would be too large for the API.
 */
export async function uploadReferences(
  context: DriverContext,
  task: GenerationTask,
): Promise<UploadedReferences> {
  const fileIds: string[] = [];
  using _room = await takeReferenceRoom(context.memory, task);
  const loaded = await loadReferences(task.references, task.signal);
  for (const [index, reference] of loaded.entries()) {
    fileIds.push(await upload(context, task, { index, reference }));
  }
  return {
    fileIds,
    async remove() {
      for (const fileId of fileIds) await removeFile(context, task, fileId);
    },
  };
}

async function upload(
  context: DriverContext,
  { upstream, idempotencyKey, signal }: GenerationTask,
  { index, reference }: { index: number; reference: LoadedReference },
): Promise<string> {
  const form = await encodeForm([
    ["purpose", "user_data"],
    ["file", reference],
  ]);
  const call = {
    upstream,
    method: "POST",
    url: urlOf(upstream, "/files"),
    headers: { ...form.headers, "idempotency-key": `${idempotencyKey}-reference-${index + 1}` },
    body: form.body,
    signal,
  } as const;
  const mayRepeat = (error: unknown) =>
    isWorthRepeating(error) && !errorOfBeginning(error, { takesKey: true });
  const tries = { most: generateTries.start, mayRepeat, signal };
  const { body } = await withTries(context, tries, () =>
    exchangeJson(context, call, generateLimits.answerBytes),
  ).catch((error) => {
    signal.throwIfAborted();
    throw errorBeforeBeginning(error) ?? error;
  });
  return checkedTaskId(body.id);
}

async function removeFile(
  context: DriverContext,
  task: GenerationTask,
  fileId: string,
): Promise<void> {
  const { upstream, signal } = task;
  const url = urlOf(upstream, `/files/${encodeURIComponent(fileId)}`);
  const timeoutMs = generateTimes.lookMs;
  try {
    const reply = await exchange(context, { upstream, method: "DELETE", url, timeoutMs, signal });
    reply.body.close();
  } catch {
    signal.throwIfAborted();
    leftBehind(context.log, { upstream, kind: task.request.kind, id: task.jobId });
  }
}
