import { untilAborted, withinTime } from "#kit/base/abort.ts";
import type { HostContext, Readiness } from "./context.ts";

/** A server or a disk that keeps what must survive a process, and the question whether it does so now. */
export interface StoreCheck {
  /** Of a second disk and further ones `disk-2` and so on. */
  store: "database" | "blobs" | "disk" | `disk-${number}`;
  /** False: this process can do without it for a while; log and metric tell of it, readiness does not. */
  isNeeded: boolean;
  /** Resolves where it answers; rejects where it does not. */
  ask(): Promise<unknown>;
}

/** Ears at the servers of a process. */
export interface StoreWatch extends AsyncDisposable {
  /** Undefined where those that are needed answer; else which does not. Sends nothing to them. */
  notReady: Readiness;
}

/** Milliseconds between two questions: a hundred processes ask a server 50 times a second, which is nothing to it. */
const askEveryMs = 2_000;
/** The same of one that did not answer: it counts as back within a second of being back. */
const askAgainMs = 500;
/** Milliseconds in which a server answers that is not overrun. */
const answerWithinMs = 2_000;
/** Unanswered questions in a row after which it is away: one may have met a connection that was just closing. */
const awayAfter = 2;

/** Asks servers again and again, so that readiness is at hand; that one is away is known within seven seconds. */
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
        // Once, with its cause; what is refused meanwhile is not logged one by one.
        log[isNeeded ? "error" : "warn"]({ err: fault, store }, "a store does not do its work");
        away.set(check, store.startsWith("disk") ? "takes no writes" : "does not answer");
      }
      up.set({ store }, unanswered < awayAfter ? 1 : 0);
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
