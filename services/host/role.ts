// Starts any role except `all`, and loads only that role's code.

import type { Config } from "./config.ts";
import { createHostContext, type ProcessOptions } from "./context.ts";

/** A running process of one role. */
export interface RoleProcess extends AsyncDisposable {
  /** For the gateway the public base URL, ending in `/v1`. For other roles the URL for internal callers. */
  readonly url: string;
  /** HOST:PORT for gRPC. Undefined where the role has none. */
  readonly grpcAddress: string | undefined;
  /** URL of metrics and health. */
  readonly opsUrl: string;
  /**
   * Stops being ready, goes on serving until no request is open, then hands back its work. When `signal` aborts, open requests are
   * broken off.
   */
  drain(signal: AbortSignal): Promise<void>;
}

/** Starts a process of any role except `all`. Its ports listen early, for probes. It resolves when it is ready. */
export async function startRole(config: Config, options: ProcessOptions): Promise<RoleProcess> {
  const context = createHostContext(config, options);
  // Only the code of the role is loaded.
  if (config.role === "gateway") {
    const { startGateway } = await import("./role-gateway.ts");
    return startGateway(context, options.signal);
  }
  const { startService } = await import("./role-service.ts");
  return startService(context, options.signal);
}
