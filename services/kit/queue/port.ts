// The agreement between the media service, which leaves wake-ups for jobs, and the queue that brings them to workers. `memory.ts`
// and `jetstream.ts` implement it.

/** A wake-up that was handed out. Until it is acknowledged, or its time is over, no other receiver gets it. */
export interface Delivery {
  /** The published id. */
  readonly id: string;
  /** From 1. Above 1 it was handed out before and not acknowledged. */
  readonly attempt: number;
  /** The headers that were published with the id. */
  readonly headers: Readonly<Record<string, string>>;
  /** Reports that it is done. Never rejects. The report may be lost, and then the wake-up is delivered again. */
  ack(): Promise<void>;
  /** Hands it out again, to any receiver, after `delayMs`. Never rejects. */
  retry(delayMs: number): Promise<void>;
}

/** One receiver of a topic. Several share what is published: each wake-up goes to one of them. */
export interface Subscription extends AsyncDisposable {
  /**
   * The next wake-up, as soon as there is one. Rejects with the signal's reason when the signal aborts, and has then taken no wake-up.
   * Rejects otherwise where the queue is away: wait a moment and call again. One call at a time.
   */
  next(signal: AbortSignal): Promise<Delivery>;
}

/** Options of a wake-up. */
export interface PublishOptions {
  /** `traceparent`, `tracestate`. */
  headers?: Readonly<Record<string, string>>;
}

/**
 * Wake-ups by topic. Each is delivered at least once, in no promised order. The queue is never the truth: the publisher has written
 * down the work, and finds it again without the queue. So a queue may forget wake-ups when it is full or erased.
 */
export interface WakeQueue extends AsyncDisposable {
  /**
   * Leaves a wake-up for one receiver of `topic`, even where there is none at the moment. An id that still waits in the topic is not
   * left twice. Rejects where the queue is away. `headers` reach the receiver unchanged.
   */
  publish(topic: string, id: string, options?: PublishOptions): Promise<void>;
  /** Begins to receive. `topic` is made where it does not exist. */
  subscribe(topic: string): Subscription;
}

/** Topics and ids consist of letters, digits, `_` and `-`, so that every queue can carry them. */
export const wakeNamePattern = /^[A-Za-z0-9_-]{1,64}$/;
/** A delivery that was neither acknowledged nor retried is handed out again after this, in ms. */
export const redeliverMs = 30_000;
/** Wake-ups that wait in one topic. Beyond it the oldest is forgotten. */
export const maxWaiting = 100_000;
