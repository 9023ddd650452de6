import type { Clock } from "#kit/clock.ts";
import type { Database } from "#kit/database.ts";
import type { Ids } from "#kit/ids.ts";
import type { ImageVerifier } from "#kit/images/index.ts";
import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";
import type { GuardedFetcher } from "#kit/outside/index.ts";
import type { Payers } from "#kit/payers.ts";
import type { Peers } from "#kit/peers.ts";
import type { TokenCounter } from "./tokens/count.ts";
import type { TextUpstreams } from "./upstream/port.ts";

/** What the text service needs. Whatever is disposable here belongs to whoever made it. */
export interface TextDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
  /** `media` reads image files of the account. */
  peers: Pick<Peers, "billing" | "catalog" | "media">;
  upstreams: TextUpstreams;
  counter: TokenCounter;
  /** Hear of each account whose money is held. */
  payers?: Payers;
  images: Pick<ImageVerifier, "verify">;
  /** For image addresses that callers name. */
  outside: Pick<GuardedFetcher, "fetchBytes">;
  /** Image addresses need be neither public nor https: for development and tests. */
  allowPrivateReferences: boolean;
}
