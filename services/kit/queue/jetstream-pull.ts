import { createInbox, type Msg, nanos } from "@nats-io/transport-node";
import type { Clock } from "../clock.ts";
import type { Link } from "./jetstream-connection.ts";
import { pullExpiryMs, pullHeartbeatMs, pullSilenceMs } from "./jetstream-limits.ts";

/**
 * How a request for one message ended.
 * - `expired`: there was none; ask again. `missing`: the consumer is not there (any more).
 * - `silent`: the server does not answer, or cannot take the request now.
 */
export type PullEnd = Msg | "expired" | "missing" | "silent";

/** Whom to ask. */
export interface PullTarget {
  stream: string;
  consumer: string;
}

/**
 * Asks a consumer for one message. Rejects with the signal's reason, or the link's where that breaks; the request is then
 * taken back, and a message that was on its way goes back at once, to whoever waits.
 */
export function pull(
  link: Link,
  target: PullTarget,
  clock: Clock,
  signal: AbortSignal,
): Promise<PullEnd> {
  const { nc, broken } = link;
  const { promise, resolve, reject } = Promise.withResolvers<PullEnd>();
  const over = new AbortController();
  const stop = AbortSignal.any([signal, broken]);
  let heardAt = clock.steady();

  const inbox = createInbox();
  const subscription = nc.subscribe(inbox, {
    callback(error, message) {
      heardAt = clock.steady();
      const end = error ? "silent" : endOf(message);
      if (end === undefined) return;
      if (over.signal.aborted) {
        if (typeof end === "object") end.respond("-NAK");
        return;
      }
      settle(() => resolve(end));
      subscription.unsubscribe();
    },
  });
  const settle = (how: () => void) => {
    over.abort();
    stop.removeEventListener("abort", leave);
    how();
  };
  /** Until the server knows of it, the callback above is still called. */
  const takeBack = () => {
    if (!nc.isClosed() && !subscription.isClosed()) subscription.drain().catch(() => {});
  };
  const leave = () => {
    settle(() => reject(stop.reason));
    takeBack();
  };
  const watch = async () => {
    for (let left = pullSilenceMs; left > 0; left = pullSilenceMs - (clock.steady() - heardAt)) {
      await clock.sleep(left, over.signal);
    }
    settle(() => resolve("silent"));
    takeBack();
  };
  stop.addEventListener("abort", leave, { once: true });
  if (stop.aborted) {
    leave();
    return promise;
  }
  watch().catch(() => {});
  const request = {
    batch: 1,
    expires: nanos(pullExpiryMs),
    idle_heartbeat: nanos(pullHeartbeatMs),
  };
  const subject = `$JS.API.CONSUMER.MSG.NEXT.${target.stream}.${target.consumer}`;
  nc.publish(subject, JSON.stringify(request), { reply: inbox });
  return promise;
}

/** Undefined: the request still stands. */
function endOf(message: Msg): PullEnd | undefined {
  const status = message.headers?.code ?? 0;
  const words = message.headers?.description.toLowerCase() ?? "";
  switch (status) {
    case 0:
      return message;
    case 100:
      return undefined;
    case 404:
    case 408:
      return "expired";
    case 409:
      if (/deleted/.test(words)) return "missing";
      return /leadership change/.test(words) ? "expired" : "silent";
    case 503:
      return "missing";
    default:
      return "silent";
  }
}
