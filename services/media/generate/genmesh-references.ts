import type { DriverContext } from "./context.ts";
import { leftBehind } from "./events.ts";
import { exchange, exchangeJson, urlOf } from "./exchange.ts";
import { errorOfBeginning, isWorthRepeating, StatusError } from "./faults.ts";
import { generateLimits, generateTimes, generateTries } from "./limits.ts";
import { takeReferenceRoom } from "./memory.ts";
import { appendReference, formBody, type LoadedReference, loadReferences } from "./multipart.ts";
import { type GenerationTask, NotTakenError } from "./port.ts";
import { withTries } from "./retries.ts";
import { checkedTaskId } from "./task-id.ts";

/** References in the file storage of another deployment. */
export interface UploadedReferences {
  /** In the order of the task's references. */
  fileIds: readonly string[];
  /** Deletes them there; where that fails, they stay. Rejects with nothing but the signal's reason. */
  remove(): Promise<void>;
}

/**
 * Uploads a task's references, each under an idempotency key of its own: a repeat names the same files, so that the
 * job's body stays the same. A body with all of them in it would be too large for the API.
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
  const form = new FormData();
  form.append("purpose", "user_data");
  appendReference(form, "file", reference);
  const { headers, ...rest } = await formBody(form);
  const call = {
    upstream,
    method: "POST",
    url: urlOf(upstream, "/files"),
    headers: { ...headers, "idempotency-key": `${idempotencyKey}-reference-${index + 1}` },
    ...rest,
    signal,
  } as const;
  const mayRepeat = (error: unknown) =>
    isWorthRepeating(error) && !errorOfBeginning(error, { takesKey: true });
  const tries = { most: generateTries.start, mayRepeat, signal };
  const { body } = await withTries(context, tries, () =>
    exchangeJson(context, call, generateLimits.answerBytes),
  ).catch((error) => {
    signal.throwIfAborted();
    throw notTaken(error) ?? error;
  });
  return checkedTaskId(body.id);
}

/** No job was asked for yet: whatever keeps the peer from taking its references, the peer has not begun it. */
function notTaken(error: unknown): NotTakenError | undefined {
  if (!isWorthRepeating(error)) return undefined;
  const refused = errorOfBeginning(error, { takesKey: false });
  if (refused instanceof NotTakenError) return refused;
  const refusal = error instanceof StatusError ? "unavailable" : "unreachable";
  return new NotTakenError(refusal, { isCertain: true, cause: error });
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
