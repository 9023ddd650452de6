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

/** The stores that the processes of a world share, opened by one of them. */
export interface WorldStores extends AsyncDisposable {
  database: Database;
  blobs: BlobStore;
  queue: WakeQueue;
}

/** Opens the stores of a world. The same folder gives the same state. */
export type OpenWorldStores = (folder: string, clock: Clock) => Promise<WorldStores>;

/** Variables that name stores on servers. Without any, all stores are embedded. */
export type StoreVariables = Readonly<Record<string, string>>;

/** SQLite and blobs in the folder, and a queue in memory. */
export const openEmbeddedStores: OpenWorldStores = (folder, clock) =>
  openWorldStores({ folder, clock });

/** Opens stores like a process of role `all`. The schemes of the URLs choose the adapters. A store that `env` does not name is embedded. */
export async function openWorldStores(options: {
  folder: string;
  clock: Clock;
  env?: StoreVariables;
}): Promise<WorldStores> {
  const { folder, env = {} } = options;
  // Servers use the machine's time, so a test's clock cannot measure how long they take to answer.
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
