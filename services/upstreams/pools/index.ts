import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { UpstreamAccounts } from "#kit/upstream/accounts.ts";
import { keyNameOf } from "../call.ts";
import { inOrder } from "./choice.ts";
import { createPoolEvents, type PoolEvents } from "./events.ts";
import type { Lane } from "./lanes.ts";
import { type Outcome, outcomes } from "./outcomes.ts";
import { Resting } from "./resting.ts";

/** Lanes that one request tries at most. Each may take a time-out to connect, while its caller waits. */
const mostTries = 4;

/** One try of a request at a lane. */
export interface Try {
  readonly lane: Lane;
  /**
   * Its outcome. Only the first counts. `askedMs`: the time that the upstream asked to be left alone. Answers whether the request may
   * try the next lane.
   */
  ended(outcome: Outcome, askedMs?: number): boolean;
}

/** The tries of one request. */
export interface Tries {
  /** Begins the next try. Undefined: no lane is left. */
  next(): Try | undefined;
  /** Is a lane left to try? */
  readonly hasNext: boolean;
  /** Tries that have begun. */
  readonly count: number;
}

/** Chooses lanes, and knows which of them rest. Each process has one. */
export interface Pools {
  /** The tries of a request: each lane once. `stick`: the name of its conversation. `model`: the public id of its model. */
  tries(lanes: readonly Lane[], model: string, stick: string): Tries;
  /** Milliseconds until a lane's rest is over. 0: it does not rest. */
  restMs(lane: Lane, model: string): number;
  /** The lane of this name broke off an answer that had begun. */
  brokeOff(lane: string): void;
}

/** Makes it, with all lanes awake. */
export function createPools(deps: {
  clock: Clock;
  metrics: Metrics;
  /** Default: no message to the operator about a refused key. */
  accounts?: UpstreamAccounts | undefined;
}): Pools {
  const events = createPoolEvents(deps);
  const restings = new Map<string, Resting>();
  const stateOf = (name: string) => {
    const known = restings.get(name) ?? new Resting(deps.clock);
    restings.set(name, known);
    return known;
  };
  const state = ({ upstream: { name } }: Lane, model: string): LaneState => ({
    lane: stateOf(name),
    model: stateOf(JSON.stringify([name, model])),
  });
  return {
    tries: (lanes, model, stick) =>
      new LaneTries(inOrder(lanes, stick), (lane) => state(lane, model), events),
    restMs: (lane, model) => leftMsOf(state(lane, model)),
    brokeOff(lane) {
      const ms = stateOf(lane).brokeOff();
      if (ms !== undefined) events.rests(lane, "failed", ms);
    },
  };
}

/** The state of a lane, and of the request's model at it. */
interface LaneState {
  lane: Resting;
  model: Resting;
}

function leftMsOf({ lane, model }: LaneState): number {
  return Math.max(lane.leftMs, model.leftMs);
}

function reasonOf({ lane, model }: LaneState): Outcome | undefined {
  return lane.reason ?? model.reason;
}

class LaneTries implements Tries {
  readonly #stateOf: (lane: Lane) => LaneState;
  readonly #events: PoolEvents;
  /** In the order of its conversation. */
  readonly #left: Lane[];
  readonly #home: Lane | undefined;
  /** Why the request is not at its conversation's first lane. */
  #moved: Outcome | undefined;
  count = 0;

  constructor(lanes: Lane[], stateOf: (lane: Lane) => LaneState, events: PoolEvents) {
    this.#left = lanes;
    this.#home = lanes[0];
    this.#stateOf = stateOf;
    this.#events = events;
  }

  get hasNext(): boolean {
    return this.#left.length > 0 && this.count < mostTries;
  }

  next(): Try | undefined {
    const lane = this.hasNext ? this.#take() : undefined;
    if (!lane) return undefined;
    this.count++;
    return this.#begin(lane);
  }

  /** The first lane that does not rest, or else the one that is free soonest. */
  #take(): Lane | undefined {
    const home = this.#home;
    if (this.count === 0 && home) this.#moved = reasonOf(this.#stateOf(home));
    const awake = this.#left.findIndex((lane) => !reasonOf(this.#stateOf(lane)));
    const at = awake >= 0 ? awake : this.#soonest();
    return this.#left.splice(at, 1)[0];
  }

  #soonest(): number {
    const times = this.#left.map((lane) => leftMsOf(this.#stateOf(lane)));
    return times.indexOf(Math.min(...times));
  }

  #begin(lane: Lane): Try {
    const { upstream } = lane;
    const states = this.#stateOf(lane);
    const ended = { lane: states.lane.begin(), model: states.model.begin() };
    const rested = (reason: Outcome, ms: number | undefined) => {
      if (ms !== undefined) this.#events.rests(upstream.name, reason, ms);
    };
    let isOver = false;
    return {
      lane,
      ended: (outcome, askedMs) => {
        const { mayMove, rest } = outcomes[outcome];
        if (isOver) return false;
        isOver = true;
        const isOfModel = rest?.ofModel === true;
        // A lane that lacks one model works. A failure of the lane is none of the model's.
        rested(outcome, ended.lane(isOfModel ? "answered" : outcome, askedMs));
        rested(outcome, ended.model(rest && !isOfModel ? "open" : outcome));
        this.#events.tried(upstream.name, outcome);
        if (outcome === "key_refused") this.#events.keyRefused(upstream.name, keyNameOf(upstream));
        const isMoved = lane !== this.#home && this.#moved !== undefined;
        if (outcome === "answered" && isMoved && this.#moved) this.#events.moved(this.#moved);
        if (lane === this.#home && mayMove) this.#moved = outcome;
        return mayMove;
      },
    };
  }
}
