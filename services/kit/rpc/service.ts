// The forms in which the host handles a service: its methods to be called, and its life from start to drain.

import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";

/** A service's methods with their descriptor. A server registers it, and the direct transport calls it. */
export interface RpcService {
  desc: DescService;
  impl: object;
}

/** Pairs a complete implementation with its descriptor. */
export function rpcService<D extends DescService>(desc: D, impl: ServiceImpl<D>): RpcService {
  return { desc, impl };
}

/** A part of the mesh that the host starts, drains and disposes of: the services, and the media worker. */
export interface Service extends AsyncDisposable {
  /** For logs, health and metrics: "auth", "billing", … */
  readonly name: string;
  /** Its methods for internal callers. */
  readonly rpc: readonly RpcService[];
  /** Opens stores and starts background work. Rejects where the service cannot work at all. */
  start(): Promise<void>;
  /** Undefined when requests will be served. Otherwise one line with the reason. */
  notReady(): string | undefined;
  /** Stops taking background work (claims, sweeps) and lets running work end, until `signal` aborts. */
  drain(signal: AbortSignal): Promise<void>;
}
