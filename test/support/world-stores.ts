import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { createLogger } from "#kit/base/logger.ts";
import type { WakeQueue } from "#kit/queue/port.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import type { Database } from "#kit/store/database.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import { envToConfig } from "../../services/host/config.ts";
import { createHostContext } from "../../services/host/context.ts";
import { openStores, storeOf } from "../../services/host/stores.ts";

/** What the processes of a world share, as one of them has it. */
export interface WorldStores extends AsyncDisposable {
  database: Database;
  blobs: BlobStore;
  queue: WakeQueue;
}

/** Opens where a world keeps its state; the same folder gives the same state. */
export type OpenWorldStores = (folder: string, clock: Clock) => Promise<WorldStores>;

/** The variables that name stores on servers; none: all of them are embedded. */
export type StoreVariables = Readonly<Record<string, string>>;

/** SQLite and blobs in the folder, and a queue in memory. */
export const openEmbeddedStores: OpenWorldStores = (folder, clock) =>
  openWorldStores({ folder, clock });

/**
 * Opens stores as a process of role `all` does: the schemes of the URLs pick the adapters, and what `env` does not name is
 * embedded.
 */
export async function openWorldStores(options: {
  folder: string;
  clock: Clock;
  env?: StoreVariables;
}): Promise<WorldStores> {
  const { folder, env = {} } = options;
  // Servers live by the machine's time: how long they may take to answer is no affair of a test's clock.
  const clock = Object.keys(env).length > 0 ? systemClock : options.clock;
  const config = envToConfig({ GENMESH_DATA_DIR: folder, ...env });
  const { signal } = new AbortController();
  const context = createHostContext(config, { log: createLogger("silent"), clock, signal });
  await using stack = new AsyncDisposableStack();
  const scratch = (name: string) => mkdtempSync(join(folder, `${name}-`));
  const stores = await openStores(context, { stack, scratch });
  const owned = stack.move();
  return {
    database: storeOf(stores, "database"),
    blobs: storeOf(stores, "blobs"),
    queue: storeOf(stores, "queue"),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
