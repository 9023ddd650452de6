import type { KeyLimit } from "#common/agreements/hold-client.ts";
import { beatMs, leaseMarginMs, leaseMs } from "#common/paid-work/limits.ts";
import { checkpointCharacters } from "../base/limits.ts";
import { decide, type End } from "../metering/charge.ts";
import type { ChargedTokens, TokenBounds } from "../metering/pricing.ts";
import type { Intent, Seen, Told } from "../store/store.ts";
import type { Tally } from "../tokens/tally.ts";
import type { Budgets } from "./budget.ts";
import { type ClosingContext, type Cover, closeRequest, openRow } from "./settling.ts";

/** How finishing went. */
export interface Finished {
  /** False where this process had lost the request before. */
  isOurs: boolean;
  /** What is charged, where we counted it ourselves; undefined: what upstream reported, or nothing. */
  estimate?: ChargedTokens | undefined;
  /** USD micros that are charged; undefined where another process decided that. */
  cost?: bigint | undefined;
}

/** A request with its hold, from dispatch to settlement. */
export interface Metered {
  readonly requestId: string;
  readonly accountId: string;
  /** By the monotonic clock, in ms. */
  readonly openedAt: number;
  /** What is paid for. */
  readonly bounds: TokenBounds;
  /** The first byte may have gone out. Until then it has cost nothing, also where its process dies. */
  isSent: boolean;
  /** Tokens of input that upstream's own tools have added so far, as far as they are known of; absent: none. */
  unseenInput: (() => number) | undefined;
  /** Name of the upstream that answers, for the record; absent: none does yet. */
  upstream: string | undefined;
  /** Called once, when another process has taken the request over: it must stop. */
  onLost: (() => void) | undefined;
  /** Output that went past. */
  saw(text: string): void;
  /** Writes down what was seen so far, where the last time is 2 s ago. Never throws. */
  beat(): void;
  /**
   * Charges the request once its end is known: once, the first end counts. Where upstream reported no usage, that waits for
   * our count, and with an idempotency key for the record. Resolves when its last event may go out. Never rejects.
   */
  finish(end: End | Promise<End>): Promise<Finished>;
}

/** What metering one request needs. */
export interface MeteredContext extends ClosingContext {
  /** What a checkpoint waits for its counts. */
  patience: Budgets;
}

/** A request whose money is held. */
export interface PaidRequest {
  intent: Intent;
  tally: Tally;
  /** When its money was first asked for, by the monotonic clock. */
  openedAt: number;
  keyLimit: KeyLimit | undefined;
}

/** Meters a request. `onClosed`: it needs no more beats. */
export function createMetered(
  paid: PaidRequest,
  context: MeteredContext,
  onClosed: () => void,
): Metered {
  return new MeteredRequest(paid, context, onClosed);
}

class MeteredRequest implements Metered {
  readonly requestId: string;
  readonly accountId: string;
  readonly openedAt: number;
  readonly bounds: TokenBounds;
  isSent = false;
  unseenInput: (() => number) | undefined;
  upstream: string | undefined;
  onLost: (() => void) | undefined;
  readonly #intent: Intent;
  readonly #tally: Tally;
  readonly #keyLimit: KeyLimit | undefined;
  readonly #context: MeteredContext;
  readonly #onClosed: () => void;
  readonly #cover: Cover;
  /** When the last checkpoint began, by the monotonic clock. */
  #beatAt: number;
  #checking: Promise<unknown> | undefined;
  #firstOutputAt: number | undefined;
  #isLost = false;
  #finished: Promise<Finished> | undefined;

  constructor(paid: PaidRequest, context: MeteredContext, onClosed: () => void) {
    const { intent, tally, openedAt, keyLimit } = paid;
    this.requestId = intent.requestId;
    this.accountId = intent.accountId;
    this.openedAt = openedAt;
    this.bounds = intent.bounds;
    this.#intent = intent;
    this.#tally = tally;
    this.#keyLimit = keyLimit;
    this.#context = context;
    this.#onClosed = onClosed;
    // By the monotonic clock: a machine's clock that is set takes no lease away and gives none. A row that was written before
    // the hold was opened is there in time.
    this.#cover = { until: openedAt + leaseMs, row: intent.idempotency ? "early" : "none" };
    this.#beatAt = openedAt;
  }

  saw(text: string): void {
    if (text === "") return;
    this.#firstOutputAt ??= this.#context.clock.now();
    this.#tally.add(text);
    // A request that is over within 2 s leaves no row, however much it said.
    const isMuch = this.#tally.uncounted >= checkpointCharacters;
    if (isMuch && this.#cover.row !== "none") this.#beat();
  }

  beat(): void {
    if (this.#context.clock.steady() - this.#beatAt >= beatMs) this.#beat();
  }

  finish(end: End | Promise<End>): Promise<Finished> {
    this.#finished ??= this.#closeOnce(end);
    return this.#finished;
  }

  #beat(): void {
    if (!this.#checking && !this.#isLost && !this.#finished) this.#checking = this.#checkpoint();
  }

  async #checkpoint(): Promise<void> {
    const { clock, events } = this.#context;
    const now = clock.now();
    const begunAt = clock.steady();
    this.#beatAt = begunAt;
    try {
      // An answer that came whole ends in the same turn: its tokens are not worth counting.
      await Promise.resolve();
      if (this.#finished) return;
      // The lease does not depend on how long counting takes.
      const seen = await this.#seen(now + leaseMs);
      if (this.#finished) return;
      const isOurs = await this.#write({ ...seen, told: this.#told() });
      if (isOurs && this.#cover.row === "early") this.#cover.until = begunAt + leaseMs;
      // What is late may be paid for no more.
      else this.#lose();
    } catch (error) {
      events.trouble("a checkpoint could not be written", this.requestId, error);
      if (clock.steady() > this.#cover.until - leaseMarginMs) this.#lose();
    } finally {
      this.#checking = undefined;
    }
  }

  /** What a checkpoint says of the tokens so far. */
  async #seen(leaseUntil: number): Promise<Omit<Seen, "told">> {
    const [shownTokens, outputTokens] = this.isSent ? await this.#counts() : [0, 0];
    const unseenTokens = this.unseenInput?.() ?? 0;
    const inputTokens = Math.min(
      shownTokens + unseenTokens,
      Math.max(shownTokens, this.bounds.input),
    );
    return { inputTokens, outputTokens, leaseUntil };
  }

  /** Writes a checkpoint; the first writes the row. False where another process has closed it. */
  async #write(seen: Seen): Promise<boolean> {
    const { store, owner } = this.#context;
    const cover = this.#cover;
    if (cover.row === "early" || cover.row === "late") {
      return store.checkpoint(this.requestId, owner, seen);
    }
    const isRepeat = cover.row === "sent";
    cover.row = "sent";
    await openRow({ ...this.#intent, ...seen }, cover, this.#context);
    // What an attempt without an answer may have written has an older lease.
    return !isRepeat || store.checkpoint(this.requestId, owner, seen);
  }

  #lose(): void {
    if (this.#isLost || this.#finished) return;
    this.#isLost = true;
    this.#context.events.lost(this.#intent);
    this.onLost?.();
  }

  #closeOnce(end: End | Promise<End>): Promise<Finished> {
    const { events, background } = this.#context;
    const closing = this.#close(end).catch((error) => {
      events.trouble("a request could not be ended", this.requestId, error);
      return { isOurs: false };
    });
    background(closing);
    return closing;
  }

  async #close(end: End | Promise<End>): Promise<Finished> {
    this.#onClosed();
    if (this.#isLost) return { isOurs: false };
    const ended = await end;
    const isBrokenOff = ended.kind === "left" || ended.kind === "ended";
    const counts = isBrokenOff ? () => this.#mostCounts() : () => this.#counts();
    const decision = await decide(ended, this.#intent, counts);
    const ending = {
      intent: this.#intent,
      cover: this.#cover,
      told: this.#told(),
      fromFree: { keyLimit: this.#keyLimit },
      checking: Promise.resolve(this.#checking),
    };
    const isOurs = await closeRequest(decision, ending, this.#context);
    if (!isOurs) this.#context.events.lost(this.#intent);
    const cost = isOurs ? (decision.closing.charge.amount ?? 0n) : undefined;
    return { isOurs, estimate: decision.estimate, cost };
  }

  async #counts(): Promise<readonly [input: number, output: number]> {
    const tally = this.#tally;
    const counted = Promise.all([tally.input(), tally.output()]);
    return (await this.#context.patience.within(counted, undefined)) ?? tally.guess();
  }

  /** What an upstream may have counted at most, where its caller or we keep it from telling. */
  async #mostCounts(): Promise<readonly [input: number, output: number]> {
    await this.#counts();
    return this.#tally.most();
  }

  #told(): Told {
    return {
      ...this.#intent.told,
      ...(this.upstream === undefined ? {} : { upstream: this.upstream }),
      ...(this.#firstOutputAt === undefined ? {} : { firstOutputAt: this.#firstOutputAt }),
    };
  }
}
