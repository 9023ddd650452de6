// The parts that drivers of images, video, music and speech get from the host: clients, verifier, renderer, clock, counts.

import type { BuiltinRenderer } from "#common/words/builtin-models.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import type { Inferences } from "#kit/telemetry/inference.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { UpstreamAccounts } from "#kit/upstream/accounts.ts";
import type { CallContext } from "../call.ts";
import type { Pools } from "../pools/index.ts";
import type { UpstreamFigures } from "./events.ts";
import type { GenerateMemory } from "./memory.ts";

/** The parts that generating media needs. The connections are not closed here. */
export interface MediaUpstreamsContext extends CallContext {
  log: Logger;
  metrics: Metrics;
  /** Default: generations are not counted or traced. */
  inferences?: Inferences;
  /** Default: no message to the operator about an empty account. */
  accounts?: UpstreamAccounts;
  /** Knows which lanes of the process rest. Default: one of its own. */
  pools?: Pools;
  verifier: ImageVerifier;
  /** Fetches URLs in an upstream's answer that are outside the upstream's origin. */
  fetcher: GuardedFetcher;
  /** Generates for the `builtin` upstream. Not disposed of here. */
  renderer: BuiltinRenderer;
  /** Times the pauses between looks and repeats. */
  clock: Clock;
  /** An existing folder for videos while they are rendered. */
  tempDir: string;
}

/** The same, with the parts that the drivers share. */
export interface DriverContext extends MediaUpstreamsContext {
  memory: GenerateMemory;
  figures: UpstreamFigures;
}
