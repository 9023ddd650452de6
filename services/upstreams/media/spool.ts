// Keeps the bytes of an answer on disk until all have come, so that slow upstreams hold no memory.

import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { joinInTurns } from "#kit/base/in-turns.ts";
import type { Turn } from "#kit/share/fair-share.ts";
import { type NamelessFile, openNamelessFile } from "#kit/store/nameless-file.ts";
import type { DriverContext } from "./context.ts";
import { takeImageRoom } from "./memory.ts";
import type { GenerationTask } from "./port.ts";

/** All the bytes that have come from an upstream. */
export interface Spooled extends AsyncDisposable {
  /** Reads them into memory, once. Waits for room first. */
  load(): Promise<Loaded>;
}

/** The same bytes in memory. Disposing gives the room back. */
export interface Loaded extends Disposable {
  bytes: Buffer;
  /** Waits for room where the bytes were few enough to need none so far. */
  hold(): Promise<void>;
}

/** Bounds for taking bytes. */
export interface SpoolBounds {
  /** The most bytes that may come. */
  maxBytes: number;
  /** This many bytes stay in memory without room, and are written to no file. Default: none. */
  freeBytes?: number;
}

/**
 * Writes bytes to a nameless file as they come. They take no room in memory until all are there, so a slow upstream delays no other
 * request. Where the disk takes no writes, room for the most possible bytes is taken, and they are kept in memory, because they were
 * paid for.
 */
export async function spool(
  { memory, tempDir }: Pick<DriverContext, "memory" | "tempDir">,
  task: Pick<GenerationTask, "accountId" | "signal">,
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes, freeBytes = 0 }: SpoolBounds,
): Promise<Spooled> {
  await using spooling = new AsyncDisposableStack();
  let file: NamelessFile | undefined;
  let isBegun = false;
  let room: Turn | undefined;
  const takeRoom = async (bytes: number) => {
    room ??= await takeImageRoom(memory, task, bytes);
  };
  spooling.defer(() => room?.[Symbol.dispose]());
  /** Bytes that are not in the file. */
  const held: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    task.signal.throwIfAborted();
    held.push(chunk);
    sizeBytes += chunk.length;
    if (sizeBytes <= freeBytes) continue;
    if (!isBegun) file = await whereDiskWorks(openNamelessFile(tempDir));
    if (!isBegun && file) spooling.use(file);
    isBegun = true;
    while (file && held[0]) {
      if (await isAppended(file, held[0])) held.shift();
      else break;
    }
    if (held.length === 0) continue;
    await takeRoom(maxBytes);
    if (file) held.unshift(await file.whole());
    file = undefined;
  }
  const spooled = spooling.move();
  return {
    async load() {
      if (sizeBytes > freeBytes) await takeRoom(sizeBytes);
      const bytes = file ? await file.whole() : await joinInTurns(held);
      const taken = room;
      // From here on the room belongs to the loaded bytes.
      room = undefined;
      return loadedIn(taken, bytes, () => takeImageRoom(memory, task, bytes.length));
    },
    [Symbol.asyncDispose]: () => spooled.disposeAsync(),
  };
}

function loadedIn(taken: Turn | undefined, bytes: Buffer, take: () => Promise<Turn>): Loaded {
  let room = taken;
  return {
    bytes,
    async hold() {
      room ??= await take();
    },
    [Symbol.dispose]() {
      room?.[Symbol.dispose]();
      room = undefined;
    },
  };
}

async function isAppended(file: NamelessFile, chunk: Uint8Array): Promise<boolean> {
  return (await whereDiskWorks(file.append(chunk).then(() => true))) ?? false;
}

/** Undefined where the disk cannot work now. */
async function whereDiskWorks<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE)) return undefined;
    throw error;
  }
}
