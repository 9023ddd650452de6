// Asks a process's stores now and then whether they work, for readiness, log and metrics.

import { untilAborted, withinTime } from "#kit/base/abort.ts";
import type { HostContext, Readiness } from "./context.ts";

/** A server or a disk with data that must survive a process, and a check whether it works now. */
export interface StoreCheck {
  /** A second disk and further ones are `disk-2` and so on. */
  store: "database" | "blobs" | "disk" | `disk-${number}`;
  /** False: this process can work without it for a while. Log and metric report it, and readiness does not. */
  isNeeded: boolean;
  /** Resolves where it answers; rejects where it does not. */
  ask(): Promise<unknown>;
}

/** Watches the servers of a process. */
export interface StoreWatch extends AsyncDisposable {
  /** Undefined where those that are needed answer. Otherwise the name of one that does not. Sends nothing to them. */
  notReady: Readiness;
}

/** Milliseconds between two questions. A hundred processes ask a server 50 times a second, which is hardly any load. */
const askEveryMs = 2_000;
/** The same for a server that did not answer. It counts as back within a second of being back. */
const askAgainMs = 500;
/** A server that is not overloaded answers within this many ms. */
const answerWithinMs = 2_000;
/** A server is away after this many unanswered questions in a row. One question may meet a connection that was just closing. */
const awayAfter = 2;

/** Asks servers again and again, so that readiness is known at any time. A server that is away is noticed within seven seconds. */
export function watchStores(
  context: Pick<HostContext, "clock" | "log" | "metrics">,
  checks: readonly StoreCheck[],
): StoreWatch {
  const { clock, log } = context;
  const life = new AbortController();
  const up = context.metrics.gauge(
    "genmesh_store_up",
    "1 where the server of a store answers, and a disk takes writes; 0 where not.",
    ["store"],
  );
  const away = new Map(checks.map((check) => [check, "was not asked yet"]));

  async function ask(check: StoreCheck): Promise<Error | undefined> {
    const late = () => new Error(`no answer within ${answerWithinMs} ms`);
    try {
      await withinTime({ clock, ms: answerWithinMs, late }, (signal) =>
        untilAborted(check.ask(), AbortSignal.any([signal, life.signal])),
      );
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }
  async function watch(check: StoreCheck): Promise<void> {
    const { store, isNeeded } = check;
    let unanswered = 0;
    while (!life.signal.aborted) {
      const fault = await ask(check);
      if (life.signal.aborted) return;
      if (!fault) {
        if (unanswered >= awayAfter) log.info({ store }, "a store does its work again");
        unanswered = 0;
        away.delete(check);
      } else if (++unanswered === awayAfter) {
        // Logged once, with its cause. The refusals meanwhile are not logged one by one.
        log[isNeeded ? "error" : "warn"]({ err: fault, store }, "a store does not do its work");
        away.set(check, store.startsWith("disk") ? "takes no writes" : "does not answer");
      }
      up.of(store).value = unanswered < awayAfter ? 1 : 0;
      await clock.sleep(fault ? askAgainMs : askEveryMs, life.signal).catch(() => {});
    }
  }
  const watching = checks.map(watch);
  return {
    notReady() {
      for (const [{ store, isNeeded }, why] of away) if (isNeeded) return `${nameOf(store)} ${why}`;
      return undefined;
    },
    async [Symbol.asyncDispose]() {
      life.abort();
      await Promise.all(watching);
    },
  };
}

function nameOf(store: StoreCheck["store"]): string {
  if (store === "database") return "the database";
  return store === "blobs" ? "the store of files" : "the disk";
}
