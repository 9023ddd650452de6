// Publishes wake-ups to JetStream, and makes the stream again where it is gone.

import { jetstream } from "@nats-io/jetstream";
import { headers as emptyHeaders } from "@nats-io/transport-node";
import { untilAborted } from "#kit/base/abort.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { Link } from "./jetstream-connection.ts";
import { awayRefusal, isApiError, isMissing } from "./jetstream-errors.ts";
import type { JetstreamEvents } from "./jetstream-events.ts";
import {
  answerTimeoutMs,
  healWaitMs,
  publishBudgetMs,
  reconnectPauseMs,
} from "./jetstream-limits.ts";
import { ensureStream, type StreamSettings, streamOf, subjectOf } from "./jetstream-stream.ts";

/** One wake-up on its way out. */
export interface Publication {
  topic: string;
  id: string;
  /** Differs for each publication, so that the server recognises its repeats. */
  generation: string;
  /** Carried to the receiver unchanged: `traceparent`, `tracestate`. */
  headers: Readonly<Record<string, string>>;
}

/** The stream, and the way into it. */
export interface StreamWriter {
  /**
   * Publishes within some seconds. Makes the stream where it is gone. Refuses with SERVICE_UNAVAILABLE, at once where the server is
   * known to be away or its stream known not to answer.
   */
  publish(publication: Publication): Promise<void>;
  /** Begins to check and make the stream until it is there. The link is new, or was silent. */
  heal(link: Link): Promise<void>;
  /** Undefined where the stream takes publications. */
  trouble(): string | undefined;
}

/** The parts that writing needs. */
export interface WriterContext {
  settings: StreamSettings;
  clock: Clock;
  events: JetstreamEvents;
  link: () => Link | undefined;
}

/** Makes a {@link StreamWriter}. */
export function createStreamWriter(context: WriterContext): StreamWriter {
  return new HealingWriter(context);
}

/** Knows whether the stream takes publications, and makes it again where it is gone. */
class HealingWriter implements StreamWriter {
  readonly #context: WriterContext;
  #healing: Promise<void> | undefined;
  #isHealthy = false;
  /** Many publications find out at the same time that the stream is gone. */
  #ensuring: Promise<void> | undefined;

  constructor(context: WriterContext) {
    this.#context = context;
  }

  async publish(publication: Publication): Promise<void> {
    const { events } = this.#context;
    const link = this.#context.link();
    if (!link) throw awayRefusal("no connection");
    if (!this.#isHealthy) {
      // Most likely the connection is fresh. Otherwise the sweeper publishes again later.
      await within(healWaitMs, link, this.heal(link)).catch(() => {});
      if (!this.#isHealthy) throw awayRefusal("the stream cannot be had");
    }
    try {
      await within(publishBudgetMs, link, this.#write(link, publication));
      events.published("sent");
    } catch (error) {
      events.published("refused");
      // The next publication need not wait for a server that does not answer.
      if (!isApiError(error)) {
        this.#isHealthy = false;
        void this.heal(link);
      }
      throw awayRefusal(error);
    }
  }

  heal(link: Link): Promise<void> {
    this.#healing ??= this.#healUntilWell(link).finally(() => {
      this.#healing = undefined;
      const now = this.#context.link();
      // The link broke meanwhile, and the next one came too early to begin the healing.
      if (now && now !== link && link.broken.aborted) void this.heal(now);
    });
    return this.#healing;
  }

  trouble(): string | undefined {
    return this.#isHealthy ? undefined : "the queue's stream cannot be had";
  }

  async #healUntilWell(link: Link): Promise<void> {
    const { clock, events } = this.#context;
    for (let tries = 0; !link.broken.aborted; tries++) {
      try {
        await this.#ensure(link);
        this.#isHealthy = true;
        return;
      } catch (error) {
        this.#isHealthy = false;
        if (tries === 0) events.streamTrouble(error);
        await clock.sleep(reconnectPauseMs, link.broken).catch(() => {});
      }
    }
  }

  async #write(link: Link, publication: Publication): Promise<void> {
    const { settings } = this.#context;
    try {
      await send(link, settings, publication);
    } catch (error) {
      if (!isMissing(error)) throw error;
      await this.#ensure(link);
      await send(link, settings, publication);
    }
  }

  #ensure({ nc }: Link): Promise<void> {
    const { settings, events } = this.#context;
    this.#ensuring ??= ensureStream(nc, settings)
      .then((how) => {
        if (how !== "kept") events.streamWritten(how);
      })
      .finally(() => {
        this.#ensuring = undefined;
      });
    return this.#ensuring;
  }
}

async function send(link: Link, settings: StreamSettings, publication: Publication) {
  const { topic, id, generation } = publication;
  const headers = emptyHeaders();
  for (const [name, value] of Object.entries(publication.headers)) headers.set(name, value);
  await jetstream(link.nc).publish(subjectOf(settings, topic, id), "", {
    msgID: `${id}.${generation}`,
    timeout: answerTimeoutMs,
    headers,
    expect: { streamName: streamOf(settings) },
  });
}

/** Runs `work` until `ms` pass or the link breaks. After that, `work` goes on by itself. */
function within(ms: number, { broken }: Link, work: Promise<void>): Promise<void> {
  return untilAborted(work, AbortSignal.any([broken, AbortSignal.timeout(ms)]));
}
