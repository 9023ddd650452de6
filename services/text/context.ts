import type { LiveCatalog } from "#kit/catalog-client.ts";
import type { Clock } from "#kit/clock.ts";
import type { Database } from "#kit/database.ts";
import type { Ids } from "#kit/ids.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import type { Payers } from "#kit/payers.ts";
import type { Peers } from "#kit/peers.ts";
import type { UpstreamHealth } from "../upstreams/health/index.ts";
import type { TextUpstreams } from "../upstreams/text/port.ts";
import type { LargeAnswers } from "./large/index.ts";
import type { TokenCounter } from "./tokens/count.ts";

/** What the text service needs. What is disposable here belongs to the host, which made it. */
export interface TextDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
  /** `media` reads image files of the account. */
  peers: Pick<Peers, "billing" | "media">;
  catalog: LiveCatalog;
  upstreams: TextUpstreams;
  /** Of all processes: operators ask text for it. */
  health: Pick<UpstreamHealth, "read">;
  counter: TokenCounter;
  large: Pick<LargeAnswers, "run">;
  /** Hear of each account whose money is held. */
  payers?: Payers;
  images: Pick<ImageVerifier, "verify">;
  /** For image addresses that callers name. */
  outside: Pick<GuardedFetcher, "fetchBytes">;
  /** Image addresses need be neither public nor https: for development and tests. */
  allowPrivateReferences: boolean;
}
