// The parts that the drivers of text get from the host: clients, the built-in model, threads, clock, counts.

import type { BuiltinText } from "#common/words/builtin-models.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Inferences } from "#kit/telemetry/inference.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { UpstreamAccounts } from "#kit/upstream/accounts.ts";
import type { CallContext } from "../call.ts";
import type { Pools } from "../pools/index.ts";
import type { Lift } from "./large-parts.ts";
import type { ReadPlain } from "./plain.ts";

/** Dependencies of the upstream side of text. The connections are not closed here. */
export interface UpstreamsContext extends CallContext {
  log: Logger;
  metrics: Metrics;
  /** Default: generations are not reported to telemetry. */
  inferences?: Inferences;
  /** Default: nothing tells the operator that an account at an upstream is empty. */
  accounts?: UpstreamAccounts;
  /** Knows which lanes of the process rest. Default: one of its own. */
  pools?: Pools;
  /** Answers requests for the `builtin` upstream. Not disposed here. */
  builtin: BuiltinText;
  /** Takes large parts out of large answers. Default: in the calling thread. */
  lift?: Lift;
  /** Reads embeddings and transcriptions. Default: in the calling thread. */
  plain?: ReadPlain;
  /** Gives the times in answers, and the pace of builtin text. */
  clock: Clock;
  /** Makes ids that an upstream left out. */
  ids: Ids;
}
