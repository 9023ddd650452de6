// Receives wake-ups of one topic from JetStream, one at a time, and settles them.

import { type Consumer, type JsMsg, jetstream } from "@nats-io/jetstream";
import type { Connection, Link } from "./jetstream-connection.ts";
import { awayRefusal, isMissing, isRequestEnded } from "./jetstream-errors.ts";
import type { JetstreamEvents } from "./jetstream-events.ts";
import { maxConsumerRounds, pullExpiryMs } from "./jetstream-limits.ts";
import { ensureConsumer, ensureStream, type StreamSettings } from "./jetstream-stream.ts";
import type { Delivery, Subscription } from "./port.ts";

/** A wake-up that was handed out by JetStream. */
export interface JetstreamDelivery extends Delivery {
  /** Starts the time of the delivery again, for a worker that holds it longer. Never rejects. */
  working(): Promise<void>;
}

/** A {@link Subscription} of JetStream. */
export interface JetstreamSubscription extends Subscription {
  next(signal: AbortSignal): Promise<JetstreamDelivery>;
}

/** The parts that receiving needs. */
export interface ReceiverContext {
  settings: StreamSettings;
  events: JetstreamEvents;
  connection: Pick<Connection, "link">;
  /** Aborts when the queue is closed. */
  closed: AbortSignal;
}

/**
 * A receiver of a topic. It has at most one request for one message at the server, so it never holds wake-ups that another replica
 * could use. A request outlives a wait that was given up, because the driver cannot take it back. The next wait uses that request. A
 * message that comes while nothing waits goes back to the queue at once.
 */
export function createReceiver(topic: string, context: ReceiverContext): JetstreamSubscription {
  return new Receiver(topic, context);
}

class Receiver implements JetstreamSubscription {
  readonly #topic: string;
  readonly #context: ReceiverContext;
  readonly #life = new AbortController();
  #waiter: PromiseWithResolvers<JsMsg> | undefined;
  /** The link of the request under way. A request over a link that broke is not waited for. */
  #asking: Link | undefined;
  /** The link on which the consumer is known to exist. */
  #consumerOf: { link: Link; consumer: Consumer } | undefined;

  constructor(topic: string, context: ReceiverContext) {
    this.#topic = topic;
    this.#context = context;
  }

  async next(signal: AbortSignal): Promise<JetstreamDelivery> {
    const { connection, closed, events } = this.#context;
    const stop = AbortSignal.any([signal, this.#life.signal, closed]);
    stop.throwIfAborted();
    const link = connection.link();
    if (!link) throw awayRefusal("no connection");
    const mine = Promise.withResolvers<JsMsg>();
    this.#waiter = mine;
    const over = AbortSignal.any([stop, link.broken]);
    const leave = () => {
      if (this.#waiter === mine) this.#waiter = undefined;
      mine.reject(over.reason);
    };
    over.addEventListener("abort", leave, { once: true });
    void this.#askWhileAwaited(link);
    try {
      const message = await mine.promise;
      events.delivered(this.#topic);
      return deliveryOf(message);
    } catch (error) {
      stop.throwIfAborted();
      throw awayRefusal(error);
    } finally {
      over.removeEventListener("abort", leave);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort(new Error("the subscription has ended"));
  }

  async #askWhileAwaited(link: Link): Promise<void> {
    if (this.#asking === link) return;
    this.#asking = link;
    try {
      while (this.#waiter && !link.broken.aborted) {
        const message = await this.#ask(link);
        if (!message) continue;
        if (this.#waiter) this.#waiter.resolve(message);
        else message.nak();
        this.#waiter = undefined;
      }
    } catch (error) {
      // After a break another link has a waiter of its own.
      if (link.broken.aborted) return;
      this.#waiter?.reject(error);
      this.#waiter = undefined;
    } finally {
      if (this.#asking === link) this.#asking = undefined;
    }
  }

  /** Makes one request. Answers a message, or undefined where none came in time. */
  async #ask(link: Link): Promise<JsMsg | undefined> {
    for (let round = 1; ; round++) {
      try {
        if (this.#consumerOf?.link !== link) {
          const consumer = await makeConsumer(link, this.#topic, this.#context);
          this.#consumerOf = { link, consumer };
        }
        return (await this.#consumerOf.consumer.next({ expires: pullExpiryMs })) ?? undefined;
      } catch (error) {
        this.#consumerOf = undefined;
        if (!isRequestEnded(error) || round === maxConsumerRounds) throw error;
      }
    }
  }
}

/** Makes the consumer of `topic`, and its stream where that is missing too. */
async function makeConsumer(
  { nc }: Link,
  topic: string,
  { settings, events }: ReceiverContext,
): Promise<Consumer> {
  const make = () => ensureConsumer(nc, settings, topic);
  const info = await make().catch(async (error) => {
    if (!isMissing(error)) throw error;
    const how = await ensureStream(nc, settings);
    if (how !== "kept") events.streamWritten(how);
    return make();
  });
  return jetstream(nc).consumers.getConsumerFromInfo(info);
}

function deliveryOf(message: JsMsg): JetstreamDelivery {
  const { headers } = message;
  // Leaves out the server's own headers.
  const names = headers?.keys().filter((name) => !name.startsWith("Nats-")) ?? [];
  return {
    id: message.subject.slice(message.subject.lastIndexOf(".") + 1),
    attempt: message.info.deliveryCount,
    headers: Object.fromEntries(names.map((name) => [name, headers?.get(name) ?? ""])),
    ack: async () => unlessClosed(() => message.ack()),
    retry: async (delayMs) => unlessClosed(() => message.nak(Math.max(0, Math.round(delayMs)))),
    working: async () => unlessClosed(() => message.working()),
  };
}

/** Where the connection is closed, the server learns nothing and delivers the wake-up again. */
function unlessClosed(tell: () => void): void {
  try {
    tell();
  } catch {}
}
