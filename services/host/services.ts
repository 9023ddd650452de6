import { mkdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { createImageVerifier, type ImageVerifier } from "#kit/images/index.ts";
import { createGuardedFetcher, type GuardedFetcher } from "#kit/outside/index.ts";
import type { Peers } from "#kit/peers.ts";
import { createMemoryQueue } from "#kit/queue/memory.ts";
import type { Service } from "#kit/rpc/service.ts";
import { createAuth } from "../auth/index.ts";
import { createBilling } from "../billing/index.ts";
import { createCatalog } from "../catalog/index.ts";
import { createBuiltinRenderer } from "../media/builtin/index.ts";
import { createMediaUpstreams } from "../media/generate/index.ts";
import { createMedia, createMediaShared, createMediaWorker } from "../media/index.ts";
import { createText } from "../text/index.ts";
import { createTextUpstreams } from "../text/upstream/index.ts";
import type { HostContext } from "./mesh.ts";
import type { Stores } from "./stores.ts";

/** Processes that decode images: one is enough for the rate of one gateway's uploads, and a hostile image stops one only. */
const imageProcesses = 1;
/** A 50-megapixel image was seen to take 655 MiB while it is decoded. */
const imageMemoryMb = 768;
/** Milliseconds for one image; 20 MiB take about 50. */
const imageTimeoutMs = 10_000;

/** Threads of the builtin renderer: one a core, and never so many that the event loop has none left. */
const renderThreads = Math.max(1, Math.min(2, availableParallelism()));

/** What services are made from. */
export interface ServiceDeps extends Stores {
  peers: Peers;
  /** Owns what the services are given. */
  stack: AsyncDisposableStack;
}

/** Makes the services of a process, in the order in which they start. */
export function createServices(context: HostContext, deps: ServiceDeps): Service[] {
  const { config } = context;
  const { stack } = deps;
  const common = { ...context, ...deps };
  const images = stack.use(
    createImageVerifier({
      processes: imageProcesses,
      memoryMb: imageMemoryMb,
      timeoutMs: imageTimeoutMs,
    }),
  );
  const outside = createGuardedFetcher({ allowPrivate: config.references.allowPrivate });
  const text = createText({
    ...common,
    upstreams: stack.use(createTextUpstreams({ ...context, secrets: config.secret })),
    images,
    outside,
    allowPrivateReferences: config.references.allowPrivate,
  });
  return [
    createCatalog({ ...context, file: config.catalogFile }),
    createAuth(common),
    createBilling(common),
    text,
    ...createMediaServices(context, deps, { images, outside }),
  ];
}

/** The API of media and its worker, over the same queue, blobs and upstreams. */
function createMediaServices(
  context: HostContext,
  deps: ServiceDeps,
  outer: { images: ImageVerifier; outside: GuardedFetcher },
): Service[] {
  const { config } = context;
  const { stack } = deps;
  const tempDir = emptyFolder(join(config.dataDir, "temp", "renders"));
  const upstreams = createMediaUpstreams({
    ...context,
    secrets: config.secret,
    verifier: outer.images,
    fetcher: outer.outside,
    renderer: stack.use(createBuiltinRenderer({ threads: renderThreads })),
    tempDir,
  });
  const common = {
    ...context,
    ...deps,
    upstreams: stack.use(upstreams),
    queue: stack.use(createMemoryQueue(context)),
    retentionDays: config.retentionDays,
    shared: createMediaShared(context),
  };
  return [
    createMedia({
      ...common,
      verifier: outer.images,
      fetcher: outer.outside,
      tempFolder: join(config.dataDir, "temp", "uploads"),
    }),
    createMediaWorker({ ...common, workers: config.workers }),
  ];
}

/** What a process that died left in it is of no use to anyone. */
function emptyFolder(path: string): string {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}
