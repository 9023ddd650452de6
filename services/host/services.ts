import { createImageVerifier } from "#kit/images/index.ts";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import type { Peers } from "#kit/peers.ts";
import type { Service } from "#kit/rpc/service.ts";
import { createAuth } from "../auth/index.ts";
import { createBilling } from "../billing/index.ts";
import { createCatalog } from "../catalog/index.ts";
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
  const upstreams = stack.use(createTextUpstreams({ ...context, secrets: config.secret }));
  return [
    createCatalog({ ...context, file: config.catalogFile }),
    createAuth(common),
    createBilling(common),
    createText({
      ...common,
      upstreams,
      images,
      outside,
      allowPrivateReferences: config.references.allowPrivate,
    }),
  ];
}
