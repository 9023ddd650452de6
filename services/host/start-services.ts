// Starts services one after the other, waits for a store that is away, and explains why a process cannot start.

import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { WrongSealError } from "#kit/base/seal.ts";
import type { Service } from "#kit/rpc/service.ts";
import type { HostContext } from "./context.ts";
import { ConfigError } from "./env.ts";

/** Milliseconds between two attempts to start on a store that is away. */
const retryMs = 1_000;

/**
 * Starts services one after the other. `stack` ends them. A store that is away is waited for without a limit. The process is alive and
 * not ready meanwhile. Rejects when `signal` aborts, and where a service cannot work at all.
 */
export async function startServices(
  services: readonly Service[],
  context: HostContext,
  { stack, signal }: { stack: AsyncDisposableStack; signal: AbortSignal },
): Promise<void> {
  for (const service of services) {
    stack.use(service);
    while (!(await started(service, context, signal))) await context.clock.sleep(retryMs, signal);
  }
}

/** False where its store is away. */
async function started(
  service: Service,
  { config, log }: HostContext,
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted();
  try {
    await service.start();
    return true;
  } catch (error) {
    if (isRefusal(error) && error.reason === ErrorReason.SERVICE_UNAVAILABLE) {
      log.warn({ err: error, service: service.name }, "waiting for a store that is away");
      return false;
    }
    if (isNewerSchema(error)) throw new ConfigError(`GENMESH_DATABASE_URL: ${error.message}`);
    if (error instanceof WrongSealError) throw sealFault(error);
    throw service.name === "catalog" ? catalogFault(error as Error, config.catalog.file) : error;
  }
}

/** The catalog's own message is a line that says which one it is, then one for every fault with its path. */
function catalogFault(error: Error, file: string): ConfigError {
  const [which = "", first = "", ...more] = error.message.split("\n").map((line) => line.trim());
  const rest = more.length > 0 ? ` (and ${more.length} more: genmesh catalog check)` : "";
  const place = which.includes(file)
    ? `a valid catalog file; ${file} is none:`
    : `a catalog file where the store has none that this version serves. ${which}`;
  return new ConfigError(`GENMESH_CATALOG must name ${place} ${first}${rest}`);
}

function sealFault({ message }: WrongSealError): ConfigError {
  return new ConfigError(
    `GENMESH_SECRETS_KEY must be the secret that sealed the stored keys of upstreams, and does not open ${message}: set the earlier secret behind it, or off to start without these keys`,
  );
}

/** Recognised by its name, so that no driver is loaded for it. */
function isNewerSchema(error: unknown): error is Error {
  return error instanceof Error && error.name === "NewerSchemaError";
}
