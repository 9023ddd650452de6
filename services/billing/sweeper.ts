import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason, isRefusal } from "#kit/errors.ts";
import type { Peers } from "#kit/peers.ts";
import type { HoldVerdict } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import { applyOne, type LedgerContext } from "./apply.ts";
import type { Owner } from "./events.ts";
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
} from "./limits.ts";
import type { Operation } from "./operations.ts";
import type { WalletHold } from "./store.ts";
import { type HoldKind, walletName } from "./wallet.ts";

/** What the sweeper needs. */
export interface HoldSweeperContext extends LedgerContext {
  /** Whom it asks. */
  peers: Pick<Peers, "text" | "media">;
}

/** Asks the owners of holds whose check time has passed, and tells how old the oldest hold is. */
export interface HoldSweeper {
  /** Looks every second until `signal` aborts; resolves when what was under way has ended. */
  run(signal: AbortSignal): Promise<void>;
  /** Looks once: at the next page of due holds. */
  sweep(signal: AbortSignal): Promise<void>;
}

const owners: Record<HoldKind, Owner> = { text: "text", speech: "media", job: "media" };

/**
 * A hold is never ended for its age, however long its owner is away: only its owner knows what became of the work.
 * Several processes may ask about the same hold; all that they do with the answer has one operation id.
 */
export function createHoldSweeper(ctx: HoldSweeperContext): HoldSweeper {
  const pausedHolds = createPauses(maxPausedHolds);
  const pausedOwners = createPauses(Object.keys(owners).length);
  let after: string | undefined;
  let agedAt = Number.NEGATIVE_INFINITY;

  async function sweep(signal: AbortSignal): Promise<void> {
    // On from where the last page ended, so that holds which cannot be ended now do not hide the ones behind them.
    const now = ctx.clock.now();
    const { items, next } = await ctx.store.dueHolds({ now, after, limit: sweepPageSize });
    after = next;
    const waiting = items.values();
    const worker = async () => {
      for (const hold of waiting) {
        if (signal.aborted) return;
        await resolve(hold, signal);
      }
    };
    await Promise.all(Array.from({ length: sweepConcurrency }, worker));
  }

  async function resolve(hold: WalletHold, signal: AbortSignal): Promise<void> {
    const owner = owners[hold.holdKind];
    const name = `${walletName(hold.wallet)}/${hold.holdId}`;
    const now = ctx.clock.now();
    if (pausedOwners.active(owner, now) || pausedHolds.active(name, now)) return;
    let verdict: HoldVerdict["verdict"];
    try {
      verdict = await ask(ctx.peers, owner, hold, signal);
      pausedOwners.end(owner);
    } catch (error) {
      if (signal.aborted) return;
      const away = isRefusal(error, ErrorReason.SERVICE_UNAVAILABLE);
      if (away) pausedOwners.begin(owner, ctx.clock.now());
      pausedHolds.begin(name, ctx.clock.now());
      ctx.events.ownerAsked(owner, away ? "away" : "failed", hold, error);
      return;
    }
    try {
      const operation = operationOf(hold, verdict, ctx.clock.now());
      if (!operation) throw new Error("a verdict that says nothing, or less than nothing");
      await end(hold, owner, operation);
      pausedHolds.end(name);
    } catch (error) {
      pausedHolds.begin(name, ctx.clock.now());
      ctx.events.ownerAsked(owner, "failed", hold, error);
    }
  }

  async function end(hold: WalletHold, owner: Owner, operation: Operation): Promise<void> {
    try {
      await applyOne(ctx, { wallet: hold.wallet, operation });
    } catch (error) {
      // Its owner or another replica moved or ended it meanwhile, which is as good.
      if (operation.kind !== "extend" || !isRefusal(error, ...overtaken)) throw error;
    }
    const verdict = operation.kind === "settle" || operation.kind === "release";
    ctx.events.ownerAsked(owner, verdict ? operation.kind : "keep", hold);
  }

  async function tellAge(): Promise<void> {
    if (ctx.clock.now() - agedAt < holdAgeIntervalMs) return;
    agedAt = ctx.clock.now();
    const openedAt = await ctx.store.oldestHold();
    ctx.events.oldestHold(openedAt === undefined ? 0 : Math.max(0, ctx.clock.now() - openedAt));
  }

  return {
    sweep,
    async run(signal) {
      while (!signal.aborted) {
        try {
          await sweep(signal);
          await tellAge();
        } catch (error) {
          ctx.events.sweepFailed(error);
        }
        await ctx.clock.sleep(sweepIntervalMs, signal).catch(() => undefined);
      }
    },
  };
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

/** What a verdict asks of the ledger; undefined where it makes no sense, and so nothing may be done. */
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
      // Text draws what it knows of before it says so; a request that it knows nothing of may still be charged.
      return verdict.value ? { kind: "release", holdId, isLapse: holdKind === "text" } : undefined;
    case undefined:
      return undefined;
  }
}

/** Pauses by name, each twice as long as the one before it. At most `most` names: the oldest is forgotten. */
function createPauses(most: number) {
  const pauses = new Map<string, { until: number; lengthMs: number }>();
  return {
    active: (name: string, now: number) => (pauses.get(name)?.until ?? 0) > now,
    begin(name: string, now: number): void {
      const last = pauses.get(name);
      // Several that were asked at once fail at once: that is one failure.
      if (last && last.until > now) return;
      const lengthMs = last ? Math.min(last.lengthMs * 2, maxAskBackoffMs) : askBackoffMs;
      pauses.delete(name);
      pauses.set(name, { until: now + lengthMs, lengthMs });
      if (pauses.size > most) pauses.delete(pauses.keys().next().value ?? name);
    },
    end: (name: string) => pauses.delete(name),
  };
}
