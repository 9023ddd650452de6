import type { BuiltinText } from "#common/words/builtin-models.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Inferences } from "#kit/telemetry/inference.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { UpstreamAccounts } from "#kit/upstream/accounts.ts";
import type { CallContext } from "../call.ts";
import type { Lift } from "./large-parts.ts";
import type { ReadPlain } from "./plain.ts";

/** What the upstream side of text needs; the connections are not closed here. */
export interface UpstreamsContext extends CallContext {
  log: Logger;
  metrics: Metrics;
  /** Default: generations are not seen from outside. */
  inferences?: Inferences;
  /** Default: the operator is not told that an account is empty. */
  accounts?: UpstreamAccounts;
  /** Answers what has the `builtin` upstream. Not disposed here. */
  builtin: BuiltinText;
  /** Takes large parts out of large answers; default: where it is called. */
  lift?: Lift;
  /** Reads embeddings and transcriptions; default: where it is called. */
  plain?: ReadPlain;
  /** Times in answers, and the pace of builtin text. */
  clock: Clock;
  /** Ids that an upstream left out. */
  ids: Ids;
}
