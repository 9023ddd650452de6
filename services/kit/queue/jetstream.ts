// The queue of a mesh: joins connection, publishing and receiving to a `WakeQueue` of `port.ts`. A single process has that of
// `memory.ts`.

import { type Ids, randomIds } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import { type Connection, openConnection } from "./jetstream-connection.ts";
import { isBadSetting } from "./jetstream-errors.ts";
import { createJetstreamEvents } from "./jetstream-events.ts";
import { answerTimeoutMs } from "./jetstream-limits.ts";
import { createStreamWriter } from "./jetstream-publish.ts";
import { createReceiver, type JetstreamSubscription } from "./jetstream-receive.ts";
import { ensureStream, type StreamSettings } from "./jetstream-stream.ts";
import { parseNatsUrl } from "./jetstream-url.ts";
import { redeliverMs, type WakeQueue, wakeNamePattern } from "./port.ts";

/** Options of a queue in JetStream. */
export interface JetstreamOptions {
  /** See {@link parseNatsUrl}. */
  url: string;
  /** A file with a user's JWT and seed, read again at each connection. */
  credsFile?: string | undefined;
  /** Servers that hold a copy of the stream; default 1. */
  replicas?: number;
  /** Part of the names of the stream (`NAME-wakes`) and its subjects (`NAME.wakes.TOPIC.ID`). Default: `genmesh`. */
  name?: string;
  /** A delivery that was not settled comes again after this, in ms. Default: {@link redeliverMs}. */
  redeliverMs?: number;
  clock: Clock;
  ids?: Ids;
  log: Logger;
  metrics: Metrics;
}

/** A {@link WakeQueue} in a JetStream work queue. */
export interface JetstreamQueue extends WakeQueue {
  subscribe(topic: string): JetstreamSubscription;
  /** Undefined while wake-ups can be published. Otherwise one line with the reason. */
  notReady(): string | undefined;
}

/**
 * Wake-ups in a work queue of NATS JetStream: one stream, a subject for each wake-up, a consumer for each topic. A missing stream or
 * consumer is made, even during work, and one with other settings is changed. Publishing and receiving are refused
 * (SERVICE_UNAVAILABLE) within seconds where the server is away.
 *
 * A server that is away at the start is no failure: the queue connects when the server comes. Rejects where the server refuses the
 * credentials or the stream's settings. Throws a TypeError where the URL or the name makes no sense.
 */
export async function openJetstreamQueue(options: JetstreamOptions): Promise<JetstreamQueue> {
  const { clock, ids = randomIds, name = "genmesh", replicas = 1, credsFile } = options;
  const target = parseNatsUrl(options.url);
  check(name);
  const events = createJetstreamEvents(options);
  const settings = { name, replicas, redeliverMs: options.redeliverMs ?? redeliverMs };
  const closed = new AbortController();
  let connection: Connection | undefined;
  const link = () => connection?.link();
  const writer = createStreamWriter({ settings, clock, events, link });
  connection = await openConnection({
    target,
    credsFile,
    clock,
    events,
    onLink: (one) => void writer.heal(one),
  });
  await refuseBadSettings(connection, settings);
  const first = link();
  if (first) await Promise.race([writer.heal(first), clock.sleep(answerTimeoutMs)]);
  const receivers = { settings, events, connection, closed: closed.signal };
  return {
    async publish(topic, id, { headers = {} } = {}) {
      check(topic);
      check(id);
      closed.signal.throwIfAborted();
      await writer.publish({ topic, id, generation: ids.make("pub", 16), headers });
    },
    subscribe(topic) {
      check(topic);
      return createReceiver(topic, receivers);
    },
    notReady: () => (link() ? writer.trouble() : "the queue's server is away"),
    async [Symbol.asyncDispose]() {
      closed.abort(new Error("the queue is closed"));
      await connection[Symbol.asyncDispose]();
    },
  };
}

/** A setting that the server refuses at the start, it would refuse for ever. */
async function refuseBadSettings(connection: Connection, settings: StreamSettings): Promise<void> {
  const link = connection.link();
  try {
    if (link) await ensureStream(link.nc, settings);
  } catch (error) {
    // No answer, or an error that time can change, is handled in the background.
    if (!isBadSetting(error)) return;
    await connection[Symbol.asyncDispose]();
    throw new Error(`the server refuses the stream: ${error.message}`, { cause: error });
  }
}

function check(name: string): void {
  if (!wakeNamePattern.test(name)) throw new TypeError("a topic or id of a queue is not a name");
}
