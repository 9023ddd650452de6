import { ErrorReason, isRefusal } from "#kit/errors.ts";
import type { Turn } from "#kit/fair-share.ts";
import { joinInTurns } from "#kit/in-turns.ts";
import { type NamelessFile, openNamelessFile } from "#kit/nameless-file.ts";
import type { DriverContext } from "./context.ts";
import { takeImageRoom } from "./memory.ts";
import type { GenerationTask } from "./port.ts";

/** Bytes that have come from an upstream, all of them. */
export interface Spooled extends AsyncDisposable {
  /** Reads them into memory, in room that is waited for, and held until this is disposed of. */
  load(): Promise<Buffer>;
}

/**
 * Takes bytes, `maxBytes` of them at the most, to a nameless file as they come: an upstream that is slow with them holds up no other request, for
 * they take no room in memory until all are there. Where the disk takes no writes, room for the most that they may be is taken, and they
 * come into memory: they were paid for.
 */
export async function spool(
  { memory, tempDir }: Pick<DriverContext, "memory" | "tempDir">,
  task: Pick<GenerationTask, "accountId" | "signal">,
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Spooled> {
  await using spooling = new AsyncDisposableStack();
  let file = await whereDiskWorks(openNamelessFile(tempDir));
  if (file) spooling.use(file);
  let room: Turn | undefined;
  const takeRoom = async (bytes: number) => {
    room ??= await takeImageRoom(memory, task, bytes);
  };
  spooling.defer(() => room?.[Symbol.dispose]());
  const held: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    task.signal.throwIfAborted();
    if (!file || !(await isAppended(file, chunk))) {
      await takeRoom(maxBytes);
      if (file) held.push(await file.whole());
      file = undefined;
      held.push(chunk);
    }
    sizeBytes += chunk.length;
  }
  const spooled = spooling.move();
  return {
    async load() {
      await takeRoom(sizeBytes);
      return file ? file.whole() : joinInTurns(held);
    },
    [Symbol.asyncDispose]: () => spooled.disposeAsync(),
  };
}

async function isAppended(file: NamelessFile, chunk: Uint8Array): Promise<boolean> {
  return (await whereDiskWorks(file.append(chunk).then(() => true))) ?? false;
}

/** Undefined where the disk cannot do its work now. */
async function whereDiskWorks<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) return undefined;
    throw error;
  }
}
