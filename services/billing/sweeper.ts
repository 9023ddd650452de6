// Looks for holds that are open longer than their owners promised, and asks the owners (text, media) what to do with each. So a
// hold whose request died with its process ends too.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Peers } from "#common/agreements/peers.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { HoldVerdict } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import type { Owner } from "./base/events.ts";
import {
  askBackoffMs,
  askTimeoutMs,
  holdAgeIntervalMs,
  maxAskBackoffMs,
  maxPausedHolds,
  maxTimeMs,
  minKeepMs,
  sweepConcurrency,
  sweepIntervalMs,
  sweepPageSize,
} from "./base/limits.ts";
import { applyOne, type LedgerContext } from "./ledger/apply.ts";
import type { Operation } from "./ledger/operations.ts";
import type { WalletHold } from "./ledger/store.ts";
import { type HoldKind, walletName } from "./ledger/wallet.ts";

/** The parts that the sweeper needs. */
export interface HoldSweeperContext extends LedgerContext {
  /** The services that it asks. */
  peers: Pick<Peers, "text" | "media">;
}

/** Asks the owners of holds whose check time has passed, and reports how old the oldest hold is. */
export interface HoldSweeper {
  /** Searches every second until `signal` aborts. Resolves when the work under way has ended. */
  run(signal: AbortSignal): Promise<void>;
  /** Handles the next page of due holds, once. */
  sweep(signal: AbortSignal): Promise<void>;
}

const owners: Record<HoldKind, Owner> = { text: "text", speech: "media", job: "media" };

/**
 * A hold is never ended because of its age, however long its owner is away. Only its owner knows what happened to the work. Several
 * processes may ask about the same hold. All that they do with the answer has one operation id.
 */
export function createHoldSweeper(ctx: HoldSweeperContext): HoldSweeper {
  return new OwnerAsking(ctx);
}

/** Keeps its place in the due holds, and the pauses of holds and owners. */
class OwnerAsking implements HoldSweeper {
  readonly #ctx: HoldSweeperContext;
  readonly #pausedHolds = createPauses(maxPausedHolds);
  readonly #pausedOwners = createPauses(Object.keys(owners).length);
  #after: string | undefined;
  #agedAt = Number.NEGATIVE_INFINITY;

  constructor(ctx: HoldSweeperContext) {
    this.#ctx = ctx;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, events } = this.#ctx;
    while (!signal.aborted) {
      try {
        await this.sweep(signal);
        await this.#tellAge();
      } catch (error) {
        events.sweepFailed(error);
      }
      await clock.sleep(sweepIntervalMs, signal).catch(() => undefined);
    }
  }

  async sweep(signal: AbortSignal): Promise<void> {
    const { clock, store } = this.#ctx;
    // Goes on where the last page ended, so that holds that cannot be ended now do not hide those behind them.
    const due = { now: clock.now(), after: this.#after, limit: sweepPageSize };
    const { items, next } = await store.dueHolds(due);
    this.#after = next;
    const waiting = items.values();
    const worker = async () => {
      for (const hold of waiting) {
        if (signal.aborted) return;
        await this.#resolve(hold, signal);
      }
    };
    await Promise.all(Array.from({ length: sweepConcurrency }, worker));
  }

  async #resolve(hold: WalletHold, signal: AbortSignal): Promise<void> {
    const { clock, peers, events } = this.#ctx;
    const owner = owners[hold.holdKind];
    const name = `${walletName(hold.wallet)}/${hold.holdId}`;
    const now = clock.now();
    if (this.#pausedOwners.active(owner, now) || this.#pausedHolds.active(name, now)) return;
    let verdict: HoldVerdict["verdict"];
    try {
      verdict = await ask(peers, owner, hold, signal);
      this.#pausedOwners.end(owner);
    } catch (error) {
      if (signal.aborted) return;
      const away = isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
      if (away) this.#pausedOwners.begin(owner, clock.now());
      this.#pausedHolds.begin(name, clock.now());
      events.ownerAsked(owner, away ? "away" : "failed", hold, error);
      return;
    }
    try {
      const operation = operationOf(hold, verdict, clock.now());
      if (!operation) throw new Error("a verdict that says nothing, or less than nothing");
      await this.#end(hold, owner, operation);
      this.#pausedHolds.end(name);
    } catch (error) {
      this.#pausedHolds.begin(name, clock.now());
      events.ownerAsked(owner, "failed", hold, error);
    }
  }

  async #end(hold: WalletHold, owner: Owner, operation: Operation): Promise<void> {
    try {
      await applyOne(this.#ctx, { wallet: hold.wallet, operation });
    } catch (error) {
      // Its owner or another replica moved or ended it meanwhile, which is just as good.
      if (operation.kind !== "extend" || !isRefusal(error, ...overtaken)) throw error;
    }
    const verdict = operation.kind === "settle" || operation.kind === "release";
    this.#ctx.events.ownerAsked(owner, verdict ? operation.kind : "keep", hold);
  }

  async #tellAge(): Promise<void> {
    const { clock, store, events } = this.#ctx;
    if (clock.now() - this.#agedAt < holdAgeIntervalMs) return;
    this.#agedAt = clock.now();
    const openedAt = await store.oldestHold();
    events.oldestHold(openedAt === undefined ? 0 : Math.max(0, clock.now() - openedAt));
  }
}

const overtaken = [
  ErrorReason.HOLD_NOT_FOUND,
  ErrorReason.OPERATION_MISMATCH,
  ErrorReason.OPERATION_CONFLICT,
] as const;

async function ask(
  peers: HoldSweeperContext["peers"],
  owner: Owner,
  hold: WalletHold,
  signal: AbortSignal,
): Promise<HoldVerdict["verdict"]> {
  const request = { holdId: hold.holdId, accountId: hold.wallet.accountId };
  const options = { signal, timeoutMs: askTimeoutMs };
  const answer =
    owner === "text"
      ? await peers.text.resolveHold(request, options)
      : await peers.media.resolveHold(request, options);
  return answer.verdict?.verdict ?? { case: undefined };
}

/** The operation for a verdict. Undefined where the verdict makes no sense, so that nothing may be done. */
function operationOf(
  { holdId, holdKind, extensions }: WalletHold,
  verdict: HoldVerdict["verdict"],
  now: number,
): Operation | undefined {
  switch (verdict.case) {
    case "keepUntil": {
      const until = Math.floor(timestampMs(verdict.value));
      const checkAt = Math.min(Math.max(until, now + minKeepMs), maxTimeMs);
      return { kind: "extend", holdId, step: extensions + 1, checkAt };
    }
    case "settleAmount":
      if (verdict.value < 0n) return undefined;
      return { kind: "settle", holdId, amount: verdict.value };
    case "release":
      // Text charges the requests that it knows before it answers. A request that it does not know may still be charged.
      return verdict.value ? { kind: "release", holdId, isLapse: holdKind === "text" } : undefined;
    case undefined:
      return undefined;
  }
}

/** Pauses by name, each twice as long as the one before it. At most `most` names are kept, and the oldest is forgotten. */
function createPauses(most: number) {
  const pauses = new Map<string, { until: number; lengthMs: number }>();
  return {
    active: (name: string, now: number) => (pauses.get(name)?.until ?? 0) > now,
    begin(name: string, now: number): void {
      const last = pauses.get(name);
      // Several that were asked at the same time fail at the same time. That is one failure.
      if (last && last.until > now) return;
      const lengthMs = last ? Math.min(last.lengthMs * 2, maxAskBackoffMs) : askBackoffMs;
      pauses.delete(name);
      pauses.set(name, { until: now + lengthMs, lengthMs });
      if (pauses.size > most) pauses.delete(pauses.keys().next().value ?? name);
    },
    end: (name: string) => pauses.delete(name),
  };
}
