import type { Delivery, WakeQueue } from "../queue/port.ts";
import type { Attributes, Telemetry } from "./port.ts";
import { traced } from "./traced.ts";

/** `queue`, whose wake-ups carry the trace that they are part of. As it is where nobody listens. */
export function tracedQueue<Q extends WakeQueue>(
  queue: Q,
  telemetry: Telemetry,
  system: "nats" | "memory",
): WakeQueue {
  if (!telemetry.isOn) return queue;
  return {
    publish(topic, id, { headers } = {}) {
      const spec = {
        family: "messaging.send",
        name: `send ${topic}`,
        attributes: attributesOf(system, topic, "send", id),
      } as const;
      return traced(telemetry, spec, (span) => {
        const carried = span.headers ?? telemetry.active()?.headers;
        return queue.publish(topic, id, { headers: { ...carried, ...headers } });
      });
    },
    subscribe(topic) {
      const subscription = queue.subscribe(topic);
      return {
        next: async (signal) =>
          followedDelivery(await subscription.next(signal), topic, telemetry, system),
        [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose](),
      };
    },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

/** Its span ends when it is settled. One that never is, has none. */
function followedDelivery(
  delivery: Delivery,
  topic: string,
  telemetry: Telemetry,
  system: "nats" | "memory",
): Delivery {
  const { id, attempt, headers } = delivery;
  const attributes = attributesOf(system, topic, "process", id);
  const spec = { family: "messaging.process", name: `process ${topic}`, attributes } as const;
  const span = telemetry.start(spec, headers);
  return {
    id,
    attempt,
    headers,
    ack: () => delivery.ack().finally(() => span.end()),
    retry: (delayMs) => delivery.retry(delayMs).finally(() => span.end()),
  };
}

function attributesOf(
  system: string,
  topic: string,
  operation: "send" | "process",
  id: string,
): Attributes {
  return {
    "messaging.system": system,
    "messaging.destination.name": topic,
    "messaging.operation.name": operation,
    "messaging.operation.type": operation,
    "messaging.message.id": id,
  };
}
