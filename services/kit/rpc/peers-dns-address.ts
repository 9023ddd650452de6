// Follows one address of a peer: whether it is up, whether it is about to stop, and how many calls it has. `peers-dns.ts` chooses
// among addresses by that.

import { isIPv6 } from "node:net";
import type { Logger } from "#kit/base/logger.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type Connections,
  type ConnectionsOptions,
  connectionsTo,
  portOf,
} from "./peers-dns-connections.ts";
import type { PeerDispatcher } from "./wire/frames-client.ts";
import type { CallOutcome, PickedPeer } from "./wire-pool.ts";

/** Milliseconds before the first probe of an address that is down, and the longest wait before a later one. */
const [firstProbeMs, maxProbeMs] = [100, 2_000];
/**
 * An address that announced its stop gets no calls for this many ms, unless there is no other address. That is longer than its port
 * stays open. A call that it accepts at the last moment may never be read.
 */
const goingMs = 3_000;
/** Milliseconds between two probes of an address that is up but broke a call. Callers that give up are no sign of a fault. */
const doubtIntervalMs = 1_000;

/** Values that an address needs from its pool. */
export interface AddressContext extends Pick<ConnectionsOptions, "url" | "tls" | "frames"> {
  clock: Clock;
  log: Logger;
  /** Called when an address goes down. */
  onDown: () => void;
}

/** One address of a name. */
export interface PeerAddress {
  readonly origin: string;
  /** Calls under way. */
  readonly outstanding: number;
  /** False from a failed connection until another one succeeds. */
  readonly isUp: boolean;
  /** Did it announce a moment ago that it is about to stop? */
  readonly isGoing: boolean;
  /** Takes it for one attempt. */
  take(): PickedPeer;
  /** From now on calls make new connections. Calls under way end on theirs. */
  renew(): void;
  /** Ends the probes. Connections close as their calls end. */
  retire(): void;
  /** Ends every connection. */
  destroy(): Promise<void>;
}

/** An address that counts as up until a connection fails. */
export function peerAddress(address: string, context: AddressContext): PeerAddress {
  const { url } = context;
  const origin = `${url.protocol}//${isIPv6(address) ? `[${address}]` : address}:${portOf(url)}`;
  const connections = connectionsTo({
    ...{ url, address, tls: context.tls, frames: context.frames },
    onGoing: () => going(),
    onConnect: (error) => (error ? health.wentDown(error) : health.cameUp()),
  });
  const health = healthOf(address, {
    ...context,
    probe: connections.probe,
    onDown() {
      // After a host died silently, calls on its old connections would be lost once it is back.
      connections.renew();
      context.onDown();
    },
  });
  let outstanding = 0;
  let goingUntilMs = Number.NEGATIVE_INFINITY;
  const going = () => {
    goingUntilMs = context.clock.steady() + goingMs;
    // The address is about to stop. A call on an idle connection to it would be lost.
    connections.renew();
  };
  return {
    origin,
    get isGoing() {
      return context.clock.steady() < goingUntilMs;
    },
    get outstanding() {
      return outstanding;
    },
    get isUp() {
      return health.isUp();
    },
    take() {
      outstanding++;
      const over = (outcome: CallOutcome) => {
        outstanding--;
        health.heard(outcome);
      };
      return new Taken(origin, connections, { going, over });
    },
    renew: connections.renew,
    retire() {
      health.stop();
      connections.retire();
    },
    async destroy() {
      health.stop();
      await connections.destroy();
    },
  };
}

/** An address, taken for one attempt. */
class Taken implements PickedPeer {
  readonly origin: string;
  readonly #connections: Pick<Connections, "dispatcher">;
  readonly going: () => void;
  #over: ((outcome: CallOutcome) => void) | undefined;

  constructor(
    origin: string,
    connections: Pick<Connections, "dispatcher">,
    { going, over }: { going: () => void; over: (outcome: CallOutcome) => void },
  ) {
    this.origin = origin;
    this.#connections = connections;
    this.going = going;
    this.#over = over;
  }

  /** Read for each attempt, since connections may be renewed before it begins. */
  get dispatcher(): PeerDispatcher {
    return this.#connections.dispatcher;
  }

  done(outcome: CallOutcome): void {
    this.#over?.(outcome);
    this.#over = undefined;
  }
}

interface Health {
  isUp(): boolean;
  wentDown(error: Error): void;
  cameUp(): void;
  /** Notes how a call ended. */
  heard(outcome: CallOutcome): void;
  stop(): void;
}

/** Decides whether an address is up, by its connections, calls and probes. */
function healthOf(
  address: string,
  context: AddressContext & { probe: () => Promise<Error | undefined> },
): Health {
  const { url, clock, log, probe } = context;
  const stop = new AbortController();
  const state = { isUp: true, failures: 0, isProbing: false, doubtAtMs: -Infinity };

  function wentDown(error: Error): void {
    if (!state.isUp || stop.signal.aborted) return;
    state.isUp = false;
    state.failures++;
    const { code = error.message } = error as NodeJS.ErrnoException;
    log.warn({ peer: url.host, address, code }, "an address of a peer is down");
    context.onDown();
    void probeUntilUp();
  }
  function cameUp(): void {
    if (state.isUp || stop.signal.aborted) return;
    state.isUp = true;
    log.info({ peer: url.host, address }, "an address of a peer is up again");
  }
  async function probeUntilUp(): Promise<void> {
    if (state.isProbing) return;
    state.isProbing = true;
    try {
      // An address that comes up and fails again at once waits longer each time, until it has answered a call.
      for (let nth = state.failures - 1; !state.isUp; nth++) {
        await clock.sleep(Math.min(maxProbeMs, firstProbeMs * 2 ** nth), stop.signal);
        if (state.isUp || (await probe()) === undefined) cameUp();
      }
    } catch {
      // The address is retired.
    } finally {
      state.isProbing = false;
    }
  }
  async function doubt(): Promise<void> {
    if (!state.isUp || clock.steady() - state.doubtAtMs < doubtIntervalMs) return;
    state.doubtAtMs = clock.steady();
    const error = await probe();
    if (error) wentDown(error);
  }
  return {
    isUp: () => state.isUp,
    wentDown,
    cameUp,
    heard(outcome) {
      if (outcome === "ok") state.failures = 0;
      // A failed connection was reported where it was made. The rest may be the call's own fault.
      else void doubt();
    },
    stop: () => stop.abort(),
  };
}
