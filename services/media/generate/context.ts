import type { Clock } from "#kit/clock.ts";
import type { FairShare } from "#kit/fair-share.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import type { Logger } from "#kit/logger.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import type { Inferences } from "#kit/telemetry/inference.ts";
import type { Telemetry } from "#kit/telemetry/port.ts";
import type { HttpClient } from "#kit/upstream/client.ts";
import type { Renderer } from "../builtin/index.ts";
import type { GenerateMemory } from "./memory.ts";

/** What generating media needs. */
export interface MediaUpstreamsContext {
  log: Logger;
  /** Default: nobody listens. */
  telemetry?: Telemetry;
  /** Default: generations are not seen from outside. */
  inferences?: Inferences;
  /** The value of a variable that a catalog names as `apiKeyEnv`; undefined: it is not set. */
  secrets: (envName: string) => string | undefined;
  verifier: ImageVerifier;
  /** Fetches what an upstream's answer names outside the upstream's origin. */
  fetcher: GuardedFetcher;
  /** Generates what has the `builtin` upstream. Not disposed here. */
  renderer: Renderer;
  /** Pauses between looks and repeats. */
  clock: Clock;
  /** An existing folder for videos while they are rendered. */
  tempDir: string;
}

/** The same, with the connections. */
export interface DriverContext extends MediaUpstreamsContext {
  /** For whatever may be sent twice. */
  http: HttpClient;
  /**
   * For what starts something and must not be sent twice: no connection is used again, so that none turns out to be
   * closed when the request has perhaps been read.
   */
  freshHttp: HttpClient;
  memory: GenerateMemory;
  /** Turns at the renderer's thread for speech. */
  speaking: FairShare;
}
