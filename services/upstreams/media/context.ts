import type { BuiltinRenderer } from "#common/words/builtin-models.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import type { Inferences } from "#kit/telemetry/inference.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { UpstreamAccounts } from "#kit/upstream/accounts.ts";
import type { CallContext } from "../call.ts";
import type { GenerateMemory } from "./memory.ts";

/** What generating media needs; the connections are not closed here. */
export interface MediaUpstreamsContext extends CallContext {
  log: Logger;
  /** Default: generations are not seen from outside. */
  inferences?: Inferences;
  /** Default: the operator is not told that an account is empty. */
  accounts?: UpstreamAccounts;
  verifier: ImageVerifier;
  /** Fetches what an upstream's answer names outside the upstream's origin. */
  fetcher: GuardedFetcher;
  /** Generates what has the `builtin` upstream. Not disposed here. */
  renderer: BuiltinRenderer;
  /** Pauses between looks and repeats. */
  clock: Clock;
  /** An existing folder for videos while they are rendered. */
  tempDir: string;
}

/** The same, with what the drivers share. */
export interface DriverContext extends MediaUpstreamsContext {
  memory: GenerateMemory;
}
