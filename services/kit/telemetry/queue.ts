// Lets wake-ups carry their trace through a queue. So a job's work appears in the trace of its request.

import { propagation, ROOT_CONTEXT, type Span } from "@opentelemetry/api";
import type { Delivery, WakeQueue } from "../queue/port.ts";
import { type Attributes, startSpan, traced, traceHeaders } from "./spans.ts";

/** `queue`, whose wake-ups carry their trace with them. */
export function tracedQueue(queue: WakeQueue, system: "nats" | "memory"): WakeQueue {
  return {
    publish(topic, id, { headers } = {}) {
      const spec = {
        family: "messaging.send",
        name: `send ${topic}`,
        attributes: attributesOf(system, topic, "send", id),
      } as const;
      return traced(spec, () =>
        queue.publish(topic, id, { headers: { ...traceHeaders(), ...headers } }),
      );
    },
    subscribe(topic) {
      const subscription = queue.subscribe(topic);
      return {
        async next(signal) {
          const delivery = await subscription.next(signal);
          const { id, headers } = delivery;
          const attributes = attributesOf(system, topic, "process", id);
          const spec = {
            family: "messaging.process",
            name: `process ${topic}`,
            attributes,
          } as const;
          const span = startSpan(spec, propagation.extract(ROOT_CONTEXT, headers));
          return endedWhenSettled(delivery, span);
        },
        [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose](),
      };
    },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

/** A delivery that is never settled has no span. */
function endedWhenSettled(delivery: Delivery, span: Span): Delivery {
  const { id, attempt, headers } = delivery;
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
