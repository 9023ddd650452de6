import type { Msg } from "@nats-io/transport-node";
import type { Clock } from "../clock.ts";
import type { Connection, Link } from "./jetstream-connection.ts";
import { awayRefusal, isMissing } from "./jetstream-errors.ts";
import type { JetstreamEvents } from "./jetstream-events.ts";
import { maxConsumerRounds } from "./jetstream-limits.ts";
import { pull } from "./jetstream-pull.ts";
import { ensureConsumer, ensureStream, type StreamSettings, streamOf } from "./jetstream-stream.ts";
import type { Delivery, Subscription } from "./port.ts";

/** A wake-up that was handed out by JetStream. */
export interface JetstreamDelivery extends Delivery {
  /** Begins the time of the delivery anew, for whoever holds it longer. Never rejects. */
  working(): Promise<void>;
}

/** A {@link Subscription} of JetStream. */
export interface JetstreamSubscription extends Subscription {
  next(signal: AbortSignal): Promise<JetstreamDelivery>;
}

/** What receiving needs. */
export interface ReceiverContext {
  settings: StreamSettings;
  clock: Clock;
  events: JetstreamEvents;
  connection: Pick<Connection, "link">;
  /** Aborts when the queue is closed. */
  closed: AbortSignal;
}

/** A receiver of a topic. */
export function createReceiver(topic: string, context: ReceiverContext): JetstreamSubscription {
  const { settings, clock, events } = context;
  const life = new AbortController();
  const target = { stream: streamOf(settings), consumer: topic };
  // Of this link we know that the consumer was there.
  let madeFor: Link | undefined;

  const make = async (link: Link) => {
    try {
      await ensureConsumer(link.nc, settings, topic);
    } catch (error) {
      if (!isMissing(error)) throw error;
      const how = await ensureStream(link.nc, settings);
      if (how !== "kept") events.streamWritten(how);
      await ensureConsumer(link.nc, settings, topic);
    }
    madeFor = link;
  };
  const receive = async (stop: AbortSignal): Promise<Msg> => {
    for (let rounds = 0; rounds < maxConsumerRounds; ) {
      const link = context.connection.link();
      if (!link) throw new Error("no connection");
      if (madeFor !== link) {
        rounds++;
        await unless(stop, make(link));
      }
      const end = await pull(link, target, clock, stop);
      if (typeof end === "object") return end;
      if (end === "silent") throw new Error("the server does not answer");
      if (end === "missing") madeFor = undefined;
    }
    throw new Error("the consumer cannot be had");
  };
  return {
    async next(signal) {
      const stop = AbortSignal.any([signal, life.signal, context.closed]);
      stop.throwIfAborted();
      try {
        const message = await receive(stop);
        events.delivered(topic);
        return deliveryOf(message);
      } catch (error) {
        stop.throwIfAborted();
        throw awayRefusal(error);
      }
    },
    async [Symbol.asyncDispose]() {
      life.abort(new Error("the subscription has ended"));
    },
  };
}

/** `work`, or the signal's reason where that comes first; the work then goes on by itself. */
async function unless(signal: AbortSignal, work: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  try {
    await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", leave);
    work.catch(() => {});
  }
}

function deliveryOf(message: Msg): JetstreamDelivery {
  let isSettled = false;
  const tell = (word: string) => {
    try {
      message.respond(word);
    } catch {
      // The connection is closed: it is delivered again.
    }
  };
  const settle = (word: string) => {
    if (!isSettled) tell(word);
    isSettled = true;
  };
  return {
    id: message.subject.slice(message.subject.lastIndexOf(".") + 1),
    attempt: attemptOf(message.reply ?? ""),
    headers: headersOf(message),
    ack: async () => settle("+ACK"),
    retry: async (delayMs) => {
      const delay = Math.max(0, Math.round(delayMs)) * 1_000_000;
      settle(delay > 0 ? `-NAK ${JSON.stringify({ delay })}` : "-NAK");
    },
    working: async () => {
      if (!isSettled) tell("+WPI");
    },
  };
}

/** `$JS.ACK.[DOMAIN.ACCOUNT.]STREAM.CONSUMER.DELIVERED.…`: nine parts of old servers, eleven or more of newer ones. */
function attemptOf(reply: string): number {
  const parts = reply.split(".");
  return Number(parts[parts.length === 9 ? 4 : 6]);
}

/** Without what is the server's own. */
function headersOf({ headers }: Msg): Record<string, string> {
  const names = headers?.keys().filter((name) => !name.startsWith("Nats-")) ?? [];
  return Object.fromEntries(names.map((name) => [name, headers?.get(name) ?? ""]));
}
