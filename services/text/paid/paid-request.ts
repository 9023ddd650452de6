// One request whose money is held, from dispatch to settlement. It knows what was used so far, and is closed exactly once.

import type { KeyLimit } from "#common/agreements/hold-client.ts";
import { beatMs, leaseMarginMs, leaseMs } from "#common/paid-work/limits.ts";
import type { Awaitable } from "#kit/base/awaitable.ts";
import { checkpointCharacters } from "../base/limits.ts";
import { decide, type End } from "../metering/charge.ts";
import type { TokenBounds } from "../metering/pricing.ts";
import type { Intent, Seen, Told } from "../store/store.ts";
import type { Tally } from "../tokens/tally.ts";
import type { Budgets } from "./budget.ts";
import {
  type ClosingContext,
  type Cover,
  closeRequest,
  type EndingRequest,
  type Finished,
  notOurs,
  openRow,
} from "./settling.ts";

/** A request with its hold, from dispatch to settlement. */
export interface Metered {
  readonly requestId: string;
  readonly accountId: string;
  /** The time of opening by the monotonic clock, in ms. */
  readonly openedAt: number;
  /** The tokens for which the hold is enough. */
  readonly bounds: TokenBounds;
  /** True once the first byte may have been sent. Until then the request costs nothing, even if its process dies. */
  isSent: boolean;
  /** Answers the known tokens of input that the upstream's own tools have added so far. Absent: none. */
  unseenInput: (() => number) | undefined;
  /** The record of the request, which grows with it. */
  readonly told: Told;
  /** Called once when another process has taken the request over. Then the request must stop. */
  onLost: (() => void) | undefined;
  /** Notes output that passed. */
  saw(text: string): void;
  /** Writes a checkpoint, where the last one is 2 s old. Never throws. */
  beat(): void;
  /**
   * Charges the request when its end is known. Only the first end counts. Where the upstream reported no usage, that waits for the
   * count of genmesh. With an idempotency key it waits for the record. Resolves when the last event may be sent. Never rejects.
   */
  finish(end: Awaitable<End>): Promise<Finished>;
}

/** Dependencies of metering one request. */
export interface MeteredContext extends ClosingContext {
  /** Bounds how long a checkpoint waits for its counts. */
  patience: Budgets;
}

/** A request with its hold. */
export interface PaidRequest {
  intent: Intent;
  tally: Tally;
  /** The time of the first request for the hold, by the monotonic clock. */
  openedAt: number;
  keyLimit: KeyLimit | undefined;
}

/** Meters a request. `onClosed` is called when its last checkpoint is past. */
export class MeteredRequest implements Metered, EndingRequest {
  readonly requestId: string;
  readonly accountId: string;
  readonly openedAt: number;
  readonly bounds: TokenBounds;
  isSent = false;
  unseenInput: (() => number) | undefined;
  onLost: (() => void) | undefined;
  readonly intent: Intent;
  readonly told: Told;
  readonly keyLimit: KeyLimit | undefined;
  readonly cover: Cover;
  checking: Promise<unknown> | undefined;
  charged: bigint | undefined;
  readonly #tally: Tally;
  readonly #context: MeteredContext;
  readonly #onClosed: () => void;
  /** The beginning of the last checkpoint, by the monotonic clock. */
  #beatAt: number;
  #isLost = false;
  #finished: Promise<Finished> | undefined;

  constructor(paid: PaidRequest, context: MeteredContext, onClosed: () => void) {
    const { intent, tally, openedAt, keyLimit } = paid;
    this.requestId = intent.requestId;
    this.accountId = intent.accountId;
    this.openedAt = openedAt;
    this.bounds = intent.bounds;
    this.intent = intent;
    this.told = intent.told ?? {};
    this.keyLimit = keyLimit;
    this.#tally = tally;
    this.#context = context;
    this.#onClosed = onClosed;
    // By the monotonic clock, so that setting the machine's clock neither shortens nor extends a lease. A row from before the hold was
    // opened is early.
    this.cover = { until: openedAt + leaseMs, row: intent.idempotency ? "early" : "none" };
    this.#beatAt = openedAt;
  }

  saw(text: string): void {
    if (text === "") return;
    this.told.firstOutputAt ??= this.#context.clock.now();
    this.#tally.add(text);
    // A request that is over within 2 s leaves no row, with any amount of output.
    const isMuch = this.#tally.uncounted >= checkpointCharacters;
    if (isMuch && this.cover.row !== "none") this.#beat();
  }

  beat(): void {
    if (this.#context.clock.steady() - this.#beatAt >= beatMs) this.#beat();
  }

  finish(end: Awaitable<End>): Promise<Finished> {
    this.#finished ??= this.#close(end);
    return this.#finished;
  }

  #beat(): void {
    if (!this.checking && !this.#isLost && !this.#finished) this.checking = this.#checkpoint();
  }

  async #checkpoint(): Promise<void> {
    const { clock, events } = this.#context;
    const now = clock.now();
    const begunAt = clock.steady();
    this.#beatAt = begunAt;
    try {
      // An answer that came whole ends in the same turn, and needs no count of its tokens.
      await Promise.resolve();
      if (this.#finished) return;
      // The lease does not depend on the time that counting takes.
      const seen = await this.#seen(now + leaseMs);
      if (this.#finished) return;
      const isOurs = await this.#write({ ...seen, told: { ...this.told } });
      if (isOurs && this.cover.row === "early") this.cover.until = begunAt + leaseMs;
      // A late row may have no hold any more.
      else this.#lose();
    } catch (error) {
      events.trouble("a checkpoint could not be written", this.requestId, error);
      if (clock.steady() > this.cover.until - leaseMarginMs) this.#lose();
    } finally {
      this.checking = undefined;
    }
  }

  /** The tokens so far, for a checkpoint. */
  async #seen(leaseUntil: number): Promise<Omit<Seen, "told">> {
    const [shownTokens, outputTokens] = this.isSent ? await this.#counts() : [0, 0];
    const unseenTokens = this.unseenInput?.() ?? 0;
    const inputTokens = Math.min(
      shownTokens + unseenTokens,
      Math.max(shownTokens, this.bounds.input),
    );
    return { inputTokens, outputTokens, leaseUntil };
  }

  /** Writes a checkpoint. The first one writes the row. False where another process has closed the request. */
  async #write(seen: Seen): Promise<boolean> {
    const { store, owner } = this.#context;
    const cover = this.cover;
    if (cover.row === "early" || cover.row === "late") {
      return store.checkpoint(this.requestId, owner, seen);
    }
    const isRepeat = cover.row === "sent";
    cover.row = "sent";
    await openRow({ ...this.intent, ...seen }, cover, this.#context);
    // A row from an earlier attempt that got no answer has an older lease.
    return !isRepeat || store.checkpoint(this.requestId, owner, seen);
  }

  #lose(): void {
    if (this.#isLost || this.#finished) return;
    this.#isLost = true;
    this.#context.events.lost(this.intent);
    this.onLost?.();
  }

  #close(end: Awaitable<End>): Promise<Finished> {
    const { events, ending } = this.#context;
    ending.began(this);
    this.#onClosed();
    const over = (finished: Finished) => {
      ending.ended(this);
      return finished;
    };
    return this.#settle(end).then(over, (error) => {
      events.trouble("a request could not be ended", this.requestId, error);
      return over(notOurs);
    });
  }

  #settle(end: Awaitable<End>): Promise<Finished> {
    if (end instanceof Promise) return end.then((ended) => this.#settle(ended));
    if (this.#isLost) return Promise.resolve(notOurs);
    const isBrokenOff = end.kind === "left" || end.kind === "ended";
    const counts = isBrokenOff ? () => this.#mostCounts() : () => this.#counts();
    try {
      const decision = decide(end, this.intent, counts);
      return decision instanceof Promise
        ? decision.then((decided) => closeRequest(decided, this, this.#context))
        : closeRequest(decision, this, this.#context);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #counts(): Promise<readonly [input: number, output: number]> {
    const tally = this.#tally;
    const counted = Promise.all([tally.input(), tally.output()]);
    return this.#context.patience.within(counted, (counts) => counts ?? tally.guess());
  }

  /** The most tokens that an upstream may have counted, where its caller or genmesh kept it from reporting them. */
  async #mostCounts(): Promise<readonly [input: number, output: number]> {
    await this.#counts();
    return this.#tally.most();
  }
}
