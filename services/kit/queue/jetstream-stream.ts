// Makes the stream and the consumers of a queue in JetStream, and names them. `jetstream-publish.ts` and `jetstream-receive.ts`
// call it where one is missing.

import {
  AckPolicy,
  type ConsumerInfo,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { type NatsConnection, nanos } from "@nats-io/transport-node";
import { isInUse, isMissing } from "./jetstream-errors.ts";
import {
  answerTimeoutMs,
  duplicateWindowMs,
  maxReceivers,
  maxUnsettled,
  topicsPerStream,
} from "./jetstream-limits.ts";
import { maxWaiting } from "./port.ts";

/** The settings of a queue's stream. */
export interface StreamSettings {
  /** Part of the names of the stream and its subjects: letters, digits, `_` and `-`. */
  name: string;
  /** Servers that hold a copy. */
  replicas: number;
  /** Milliseconds after which a delivery that was not settled comes again. */
  redeliverMs: number;
}

/** The stream of a queue. */
export function streamOf({ name }: StreamSettings): string {
  return `${name}-wakes`;
}

/** The subject of a wake-up, or of all (`*`) of a topic. Each wake-up has its own subject, so that the stream holds it once. */
export function subjectOf({ name }: StreamSettings, topic: string, id: string): string {
  return `${name}.wakes.${topic}.${id}`;
}

/**
 * Makes the stream, or gives it these settings where it has others. Processes that do this at the same time have the same result.
 * Answers what it did. Rejects where the server does not answer, or a setting cannot be changed.
 */
export async function ensureStream(
  nc: NatsConnection,
  settings: StreamSettings,
): Promise<"made" | "changed" | "kept"> {
  const streams = (await managerOf(nc)).streams;
  const wanted = configOf(settings);
  const found = await streams.info(wanted.name).catch((error) => {
    if (!isMissing(error)) throw error;
  });
  if (!found) {
    try {
      await streams.add(wanted);
      return "made";
    } catch (error) {
      // Another process was faster, with other settings.
      if (!isInUse(error)) throw error;
    }
  } else if (covers(found.config, wanted)) {
    return "kept";
  }
  await streams.update(wanted.name, wanted);
  return "changed";
}

/** Makes the consumer of a topic, or gives it these settings. Rejects with the error of a missing stream where there is none. */
export async function ensureConsumer(
  nc: NatsConnection,
  settings: StreamSettings,
  topic: string,
): Promise<ConsumerInfo> {
  const { consumers } = await managerOf(nc);
  const stream = streamOf(settings);
  const changeable = {
    ack_wait: nanos(settings.redeliverMs),
    max_deliver: -1,
    max_ack_pending: maxUnsettled,
    filter_subject: subjectOf(settings, topic, "*"),
  };
  const found = await consumers.info(stream, topic).catch((error) => {
    if (!isMissing(error)) throw error;
  });
  if (found && covers(found.config, changeable)) return found;
  if (!found) {
    try {
      return await consumers.add(stream, {
        ...changeable,
        durable_name: topic,
        deliver_policy: DeliverPolicy.All,
        ack_policy: AckPolicy.Explicit,
        max_waiting: maxReceivers,
      });
    } catch (error) {
      // Another process was faster, with other settings.
      if (!isInUse(error)) throw error;
    }
  }
  return consumers.update(stream, topic, changeable);
}

function managerOf(nc: NatsConnection): Promise<JetStreamManager> {
  return jetstreamManager(nc, { timeout: answerTimeoutMs, checkAPI: false });
}

function configOf(settings: StreamSettings): Partial<StreamConfig> & { name: string } {
  return {
    name: streamOf(settings),
    description: "Wake-ups of genmesh: hints, never the truth",
    subjects: [subjectOf(settings, "*", "*")],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
    // One wake-up of each id. One that is published again replaces the one that waits.
    max_msgs_per_subject: 1,
    max_msgs: topicsPerStream * maxWaiting,
    discard: DiscardPolicy.Old,
    duplicate_window: nanos(duplicateWindowMs),
    num_replicas: settings.replicas,
  };
}

/** Does `found` have the same value for each setting in `wanted`? */
function covers(found: object, wanted: object): boolean {
  const has = found as Record<string, unknown>;
  return Object.entries(wanted).every(
    ([name, value]) => JSON.stringify(has[name]) === JSON.stringify(value),
  );
}
