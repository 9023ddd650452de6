// The queue of a single process. A mesh has that of `jetstream.ts`.

import type { Clock } from "#kit/time/clock.ts";
import {
  type Delivery,
  maxWaiting,
  redeliverMs,
  type Subscription,
  type WakeQueue,
  wakeNamePattern,
} from "./port.ts";

/** A receiver that waits. */
interface Receiver {
  receive: (wake: Wake) => void;
}

/** A waiting wake-up, and how often it was handed out. */
interface Wake {
  id: string;
  attempt: number;
  headers: Readonly<Record<string, string>>;
}

interface Topic {
  /** By id, in the order in which they came. */
  waiting: Map<string, Wake>;
  receivers: Set<Receiver>;
}

/** The queue of a single process, in its memory. A restart forgets it, as the port allows: the store still knows which work is due. */
export function createMemoryQueue({ clock }: { clock: Clock }): WakeQueue {
  const topics = new Map<string, Topic>();
  const life = new AbortController();

  const topicOf = (name: string): Topic => {
    check(name);
    const known = topics.get(name) ?? { waiting: new Map(), receivers: new Set() };
    topics.set(name, known);
    return known;
  };
  const offer = (topic: Topic, wake: Wake): void => {
    if (life.signal.aborted || topic.waiting.has(wake.id)) return;
    const [receiver] = topic.receivers;
    if (receiver) {
      topic.receivers.delete(receiver);
      receiver.receive(wake);
      return;
    }
    topic.waiting.set(wake.id, wake);
    const [oldest] = topic.waiting.keys();
    if (topic.waiting.size > maxWaiting && oldest !== undefined) topic.waiting.delete(oldest);
  };
  const deliver = (topic: Topic, { id, attempt, headers }: Wake): Delivery => {
    const settled = new AbortController();
    const signal = AbortSignal.any([settled.signal, life.signal]);
    const again = (ms: number, until: AbortSignal) => {
      clock.sleep(ms, until).then(
        () => offer(topic, { id, attempt: attempt + 1, headers }),
        () => {},
      );
    };
    again(redeliverMs, signal);
    return {
      id,
      attempt,
      headers,
      async ack() {
        settled.abort();
      },
      async retry(delayMs) {
        if (settled.signal.aborted) return;
        settled.abort();
        again(delayMs, life.signal);
      },
    };
  };
  return {
    async publish(name, id, { headers = {} } = {}) {
      check(id);
      if (life.signal.aborted) throw new Error("the queue is closed");
      offer(topicOf(name), { id, attempt: 1, headers });
    },
    subscribe: (name) => subscription(topicOf(name), deliver, life.signal),
    async [Symbol.asyncDispose]() {
      life.abort(new Error("the queue is closed"));
      topics.clear();
    },
  };
}

function subscription(
  topic: Topic,
  deliver: (topic: Topic, wake: Wake) => Delivery,
  closed: AbortSignal,
): Subscription {
  const life = new AbortController();
  return {
    async next(signal) {
      const stop = AbortSignal.any([signal, life.signal, closed]);
      stop.throwIfAborted();
      for (const [id, wake] of topic.waiting) {
        topic.waiting.delete(id);
        return deliver(topic, wake);
      }
      return new Promise((resolve, reject) => {
        const leave = () => {
          topic.receivers.delete(receiver);
          reject(stop.reason);
        };
        const receiver: Receiver = {
          receive(wake) {
            stop.removeEventListener("abort", leave);
            resolve(deliver(topic, wake));
          },
        };
        topic.receivers.add(receiver);
        stop.addEventListener("abort", leave, { once: true });
      });
    },
    async [Symbol.asyncDispose]() {
      life.abort(new Error("the subscription has ended"));
    },
  };
}

function check(name: string): void {
  if (!wakeNamePattern.test(name)) throw new TypeError("a topic or id of a queue is not a name");
}
