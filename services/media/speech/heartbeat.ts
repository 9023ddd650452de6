import { ErrorReason, RefusalError } from "#kit/errors.ts";
import type { SpeechContext } from "./context.ts";
import { beatMs, busyRetryMs, leaseMarginMs, leaseMs } from "./limits.ts";
import type { SpeechIntent } from "./store.ts";

/**
 * Moves a running request's lease every 2 s, until `stop` aborts. Aborts it itself, with SERVICE_UNAVAILABLE, where the
 * request is somebody else's now, or could be before the next beat. Never rejects.
 */
export async function keepBeating(
  intent: SpeechIntent,
  { clock, store, events }: SpeechContext,
  stop: AbortController,
): Promise<void> {
  const { speechId, owner } = intent;
  // By the monotonic clock: a machine's clock that is set takes no lease away and gives none.
  let leaseUntil = clock.steady() + leaseMs;
  const lose = () => {
    events.lost(intent);
    stop.abort(
      new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
        metadata: { retry_after_ms: String(busyRetryMs) },
      }),
    );
  };
  for (;;) {
    await clock.sleep(beatMs, stop.signal).catch(() => {});
    if (stop.signal.aborted) return;
    const until = clock.steady() + leaseMs;
    try {
      const isOurs = await store.beat(speechId, owner, clock.now() + leaseMs);
      if (stop.signal.aborted) return;
      if (!isOurs) return lose();
      leaseUntil = until;
    } catch (error) {
      events.trouble("a speech could not beat", speechId, error);
      if (clock.steady() > leaseUntil - leaseMarginMs) return lose();
    }
  }
}
