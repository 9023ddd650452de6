import { tmpdir } from "node:os";
import { pino } from "pino";
import { createMetrics } from "#kit/base/metrics.ts";
import { createImageVerifier } from "#kit/images/index.ts";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import type { Clock } from "#kit/time/clock.ts";
import { createHttpClient } from "#kit/upstream/client.ts";
import { createBuiltinRenderer } from "../../services/builtin/index.ts";
import { createMediaUpstreams } from "../../services/upstreams/media/index.ts";
import type { MediaUpstreams } from "../../services/upstreams/media/port.ts";
import { tokenIssuer } from "../support/upstreams/declared-common.ts";

/** The doubles' key. */
export const upstreamKey = "fal-id:fal-secret";

/** The upstreams of a real process. They live until it is killed. */
export function realUpstreams(clock: Clock): MediaUpstreams {
  return createMediaUpstreams({
    clock,
    metrics: createMetrics(),
    log: pino({ level: "silent" }),
    secrets: (name) => (name.endsWith("ACCESS_KEY") ? tokenIssuer : upstreamKey),
    http: createHttpClient(),
    verifier: createImageVerifier({ processes: 1, memoryMb: 512, timeoutMs: 20_000 }),
    fetcher: createGuardedFetcher({ allowPrivate: true }),
    renderer: createBuiltinRenderer({ threads: 1, clock }),
    tempDir: tmpdir(),
  });
}
