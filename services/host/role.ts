import type { Config } from "./config.ts";
import { createHostContext, type ProcessOptions } from "./context.ts";

/** A running process of one role. */
export interface RoleProcess extends AsyncDisposable {
  /** Of the gateway the public base URL, ending in `/v1`; of others where internal callers find it. */
  readonly url: string;
  /** HOST:PORT for gRPC; undefined where the role has none. */
  readonly grpcAddress: string | undefined;
  /** Where metrics and health are. */
  readonly opsUrl: string;
  /**
   * Stops being ready, goes on serving until no request is open, then hands back what it holds. When `signal` aborts, what
   * is still open breaks off.
   */
  drain(signal: AbortSignal): Promise<void>;
}

/** Starts a process of any role but `all`. Its ports listen early, for probes; it resolves when it is ready. */
export async function startRole(config: Config, options: ProcessOptions): Promise<RoleProcess> {
  const context = createHostContext(config, options);
  // Only what the role needs is loaded.
  if (config.role === "gateway") {
    const { startGateway } = await import("./role-gateway.ts");
    return startGateway(context, options.signal);
  }
  const { startService } = await import("./role-service.ts");
  return startService(context, options.signal);
}
