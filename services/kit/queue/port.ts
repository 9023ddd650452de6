/** A wake-up that was handed out. Until it is acknowledged, or its time is over, no other receiver gets it. */
export interface Delivery {
  /** What was published. */
  readonly id: string;
  /** From 1; above 1 it was handed out before and not acknowledged. */
  readonly attempt: number;
  /** What was published beside the id. */
  readonly headers: Readonly<Record<string, string>>;
  /** It is done with. Never rejects; may be lost, and then it is delivered again. */
  ack(): Promise<void>;
  /** Hands it out again, to any receiver, after `delayMs`. Never rejects. */
  retry(delayMs: number): Promise<void>;
}

/** One receiver of a topic. Several share what is published: each wake-up goes to one of them. */
export interface Subscription extends AsyncDisposable {
  /**
   * The next wake-up, as soon as there is one. Rejects with the signal's reason when that aborts, and then has taken
   * nothing; rejects otherwise where the queue is away: wait a moment and call again. One call at a time.
   */
  next(signal: AbortSignal): Promise<Delivery>;
}

/** What goes along with a wake-up. */
export interface PublishOptions {
  /** `traceparent`, `tracestate`. */
  headers?: Readonly<Record<string, string>>;
}

/**
 * Wake-ups by topic: at least once, in no promised order, and none of them is the truth. A publisher has written
 * down what is to be done, and finds it again without the queue; so a queue may forget when it is full or erased.
 */
export interface WakeQueue extends AsyncDisposable {
  /**
   * Leaves a wake-up for one receiver of `topic`, also where there is none at the moment. The same id that still waits in
   * the topic is not left twice. Rejects where the queue is away. `headers` reach the receiver as they are.
   */
  publish(topic: string, id: string, options?: PublishOptions): Promise<void>;
  /** Begins to receive. `topic` is made where it does not exist. */
  subscribe(topic: string): Subscription;
}

/** Topics and ids, so that every queue can carry them: letters, digits, `_` and `-`. */
export const wakeNamePattern = /^[A-Za-z0-9_-]{1,64}$/;
/** A delivery that was neither acknowledged nor retried is handed out again after this, in ms. */
export const redeliverMs = 30_000;
/** Wake-ups that wait in one topic; beyond it the oldest is forgotten. */
export const maxWaiting = 100_000;
