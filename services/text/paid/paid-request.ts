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
  { intent, tally, openedAt, keyLimit }: PaidRequest,
  context: MeteredContext,
  onClosed: () => void,
): Metered {
  const { clock, store, events, owner } = context;
  const { requestId, accountId } = intent;
  // By the monotonic clock: a machine's clock that is set takes no lease away and gives none. A row that was written before
  // the hold was opened is there in time.
  const cover: Cover = {
    until: openedAt + leaseMs,
    row: intent.idempotency ? "early" : "none",
  };
  let beatAt = openedAt;
  let checking: Promise<unknown> | undefined;
  let firstOutputAt: number | undefined;
  let isLost = false;
  let finished: Promise<Finished> | undefined;

  const told = (): Told => ({
    ...intent.told,
    ...(metered.upstream === undefined ? {} : { upstream: metered.upstream }),
    ...(firstOutputAt === undefined ? {} : { firstOutputAt }),
  });
  const lose = () => {
    if (isLost || finished) return;
    isLost = true;
    events.lost(intent);
    metered.onLost?.();
  };
  const counts = async (): Promise<readonly [input: number, output: number]> => {
    const counted = Promise.all([tally.input(), tally.output()]);
    return (await context.patience.within(counted, undefined)) ?? tally.guess();
  };
  /** What an upstream may have counted at most, where its caller or we keep it from telling. */
  const mostCounts = async () => {
    await counts();
    return tally.most();
  };
  /** The first writes the row. False where another process has closed it. */
  const write = async (seen: Seen): Promise<boolean> => {
    if (cover.row === "early" || cover.row === "late") {
      return store.checkpoint(requestId, owner, seen);
    }
    const isRepeat = cover.row === "sent";
    cover.row = "sent";
    await openRow({ ...intent, ...seen }, cover, context);
    // What an attempt without an answer may have written has an older lease.
    return !isRepeat || store.checkpoint(requestId, owner, seen);
  };
  const checkpoint = async () => {
    const now = clock.now();
    const begunAt = clock.steady();
    beatAt = begunAt;
    try {
      // An answer that came whole ends in the same turn: its tokens are not worth counting.
      await Promise.resolve();
      if (finished) return;
      // The lease does not depend on how long counting takes.
      const [shownTokens, outputTokens] = metered.isSent ? await counts() : [0, 0];
      const unseenTokens = metered.unseenInput?.() ?? 0;
      const inputTokens = Math.min(
        shownTokens + unseenTokens,
        Math.max(shownTokens, intent.bounds.input),
      );
      if (finished) return;
      const leaseUntil = now + leaseMs;
      const isOurs = await write({ inputTokens, outputTokens, leaseUntil, told: told() });
      if (isOurs && cover.row === "early") cover.until = begunAt + leaseMs;
      // What is late may be paid for no more.
      else lose();
    } catch (error) {
      events.trouble("a checkpoint could not be written", requestId, error);
      if (clock.steady() > cover.until - leaseMarginMs) lose();
    } finally {
      checking = undefined;
    }
  };
  const beat = () => {
    if (!checking && !isLost && !finished) checking = checkpoint();
  };
  const close = async (end: End | Promise<End>): Promise<Finished> => {
    onClosed();
    if (isLost) return { isOurs: false };
    const ended = await end;
    const isBrokenOff = ended.kind === "left" || ended.kind === "ended";
    const decision = await decide(ended, intent, isBrokenOff ? mostCounts : counts);
    const fromFree = { keyLimit };
    const ending = { intent, cover, told: told(), fromFree, checking: Promise.resolve(checking) };
    const isOurs = await closeRequest(decision, ending, context);
    if (!isOurs) events.lost(intent);
    const cost = isOurs ? (decision.closing.charge.amount ?? 0n) : undefined;
    return { isOurs, estimate: decision.estimate, cost };
  };
  const closeOnce = (end: End | Promise<End>): Promise<Finished> => {
    const closing = close(end).catch((error) => {
      events.trouble("a request could not be ended", requestId, error);
      return { isOurs: false };
    });
    context.background(closing);
    return closing;
  };
  const metered: Metered = {
    requestId,
    accountId,
    openedAt,
    bounds: intent.bounds,
    isSent: false,
    unseenInput: undefined,
    upstream: undefined,
    onLost: undefined,
    saw(text) {
      if (text === "") return;
      firstOutputAt ??= clock.now();
      tally.add(text);
      // A request that is over within 2 s leaves no row, however much it said.
      if (tally.uncounted >= checkpointCharacters && cover.row !== "none") beat();
    },
    beat() {
      if (clock.steady() - beatAt >= beatMs) beat();
    },
    finish(end) {
      finished ??= closeOnce(end);
      return finished;
    },
  };
  return metered;
}
