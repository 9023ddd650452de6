// Starts the catalog service over a SQLite store, with a client, for tests of versions and of stored keys. Two replicas of one
// folder share their store.

import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createPeers } from "#common/agreements/peers.ts";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import type { Seal } from "#kit/base/seal.ts";
import { createDirectTransport } from "#kit/rpc/direct-transport.ts";
import { serverErrorInterceptor } from "#kit/rpc/interceptors.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import type { Workshop } from "#kit/threads/workshop.ts";
import { manualClock } from "#kit/time/clock.ts";
import { createCatalog } from "./index.ts";

/** A replica that ends with the test. */
export async function startReplica({
  folder,
  workshop,
  isStored = true,
  nowMs,
  seal,
}: {
  /** Has the store, and the file `catalog.yaml`. */
  folder: string;
  workshop: Workshop;
  /** Are versions in the store the master? */
  isStored?: boolean;
  nowMs?: number;
  seal?: Seal | undefined;
}) {
  /** The lines of its log. */
  const lines: string[] = [];
  const log = createLogger("trace", { write: (line) => lines.push(line) });
  const clock = manualClock(nowMs);
  const sqlite = openSqlite(join(folder, "genmesh.sqlite"));
  const database = isStored ? ({ kind: "sqlite", sqlite } as const) : undefined;
  const file = join(folder, "catalog.yaml");
  const metrics = createMetrics();
  const service = createCatalog({ file, database, seal, clock, log, metrics, workshop });
  onTestFinished(async () => {
    await service[Symbol.asyncDispose]();
    sqlite[Symbol.dispose]();
  });
  const transport = createDirectTransport({
    services: () => service.rpc,
    clientInterceptors: [],
    serverInterceptors: [serverErrorInterceptor({ log, ids: randomIds })],
  });
  await service.start();
  return { client: createPeers(() => transport).catalog, clock, lines };
}
