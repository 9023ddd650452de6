import type { Readable } from "node:stream";
import type { Clock } from "#kit/clock.ts";
import type { RefusalError } from "#kit/errors.ts";
import { malformed } from "./errors.ts";
import { bodyIdleMs, bodySweepMs, bodyTotalMs } from "./limits.ts";

/** A body that is still coming. */
interface Coming {
  source: Readable;
  beganAtMs: number;
  lastByteAtMs: number;
  stalled: (why: RefusalError) => void;
}

/**
 * Watches bodies from their first byte to their last: `stalled` is called once for one that brings nothing for too
 * long, or is not complete after too long. Reading the body is the caller's: watch it in the same turn.
 */
export function createStallWatch(
  clock: Clock,
): (source: Readable, stalled: (why: RefusalError) => void) => void {
  const coming = new Set<Coming>();
  let sweeping = false;
  // One timer for all bodies: nearly all of them are complete long before it fires.
  const sweep = async () => {
    sweeping = true;
    while (coming.size > 0) {
      await clock.sleep(bodySweepMs);
      for (const body of coming) {
        if (!isStalled(body, clock.steady())) continue;
        coming.delete(body);
        body.stalled(malformed("The body did not arrive in time."));
      }
    }
    sweeping = false;
  };
  return (source, stalled) => {
    const now = clock.steady();
    const body: Coming = { source, beganAtMs: now, lastByteAtMs: now, stalled };
    source.once("end", () => coming.delete(body));
    source.once("close", () => coming.delete(body));
    source.on("data", () => {
      body.lastByteAtMs = clock.steady();
    });
    coming.add(body);
    if (!sweeping) void sweep();
  };
}

function isStalled(body: Coming, nowMs: number): boolean {
  // A source that waits for us to read is not a slow caller.
  if (body.source.readableFlowing === false) body.lastByteAtMs = nowMs;
  return nowMs - body.lastByteAtMs >= bodyIdleMs || nowMs - body.beganAtMs >= bodyTotalMs;
}
