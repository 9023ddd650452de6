import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";

/** A service's methods with their descriptor: what a server registers, and what the direct transport calls. */
export interface RpcService {
  desc: DescService;
  impl: object;
}

/** Pairs a complete implementation with its descriptor. */
export function rpcService<D extends DescService>(desc: D, impl: ServiceImpl<D>): RpcService {
  return { desc, impl };
}

/** What every `services/<name>/index.ts` makes. */
export interface Service extends AsyncDisposable {
  /** For logs, health and metrics: "auth", "billing", … */
  readonly name: string;
  /** What it answers. */
  readonly rpc: readonly RpcService[];
  /** Opens stores and starts background work. Rejects where the service cannot work at all. */
  start(): Promise<void>;
  /** Undefined when requests will be served; else one line that says why not. */
  notReady(): string | undefined;
  /** Stops taking work of its own (claims, sweeps) and lets what runs end, up to `signal`. */
  drain(signal: AbortSignal): Promise<void>;
}
