// Gives a request one upstream after the other to try, leaves out those that rest, and learns from how each try ended. Text,
// speech and beginning jobs use it.

import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { UpstreamAccounts } from "#kit/upstream/accounts.ts";
import { keyNameOf } from "../call.ts";
import { inOrder } from "./choice.ts";
import { createPoolEvents, type PoolEvents } from "./events.ts";
import { type Lane, upstreamOfLane } from "./lanes.ts";
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
  /** May work begin at this lane? Not while it rests, or one request tries whether it works again. */
  isAwake(lane: Lane, model: string): boolean;
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
  const states = new States(deps.clock);
  return {
    tries: (lanes, model, stick) => new LaneTries(inOrder(lanes, stick), model, { states, events }),
    restMs: ({ upstream }, model) => states.restMs(upstream.name, model),
    isAwake: ({ upstream }, model) => states.reason(upstream.name, model) === undefined,
    brokeOff(lane) {
      const ms = states.ofLane(lane).brokeOff();
      if (ms !== undefined) events.rests(lane, "failed", ms);
    },
  };
}

/** The states of lanes, and of models at them. */
class States {
  readonly #clock: Clock;
  readonly #lanes = new Map<string, Resting>();
  /** By lane and model. Only those that a lane has lacked are here. */
  readonly #models = new Map<string, Resting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ofLane(lane: string): Resting {
    const known = this.#lanes.get(lane) ?? new Resting(this.#clock);
    this.#lanes.set(lane, known);
    return known;
  }

  /** Undefined where the lane has not lacked the model. */
  ofModel(lane: string, model: string): Resting | undefined {
    return this.#models.size === 0 ? undefined : this.#models.get(JSON.stringify([lane, model]));
  }

  lacks(lane: string, model: string): Resting {
    const known = this.ofModel(lane, model) ?? new Resting(this.#clock);
    this.#models.set(JSON.stringify([lane, model]), known);
    return known;
  }

  restMs(lane: string, model: string): number {
    return Math.max(this.ofLane(lane).leftMs, this.ofModel(lane, model)?.leftMs ?? 0);
  }

  reason(lane: string, model: string): Outcome | undefined {
    return this.ofLane(lane).reason ?? this.ofModel(lane, model)?.reason;
  }
}

/** The parts that all requests share. */
interface Shared {
  states: States;
  events: PoolEvents;
}

class LaneTries implements Tries {
  readonly #model: string;
  readonly #shared: Shared;
  /** In the order of its conversation. */
  #left: Lane[];
  readonly #home: Lane | undefined;
  /** Has it other lanes, by which a failure of one can be judged? */
  readonly #isJudged: boolean;
  /** Ends of failed tries. They count once another lane has answered. A request that fails everywhere may be at fault itself. */
  readonly #failed: ((outcome: Outcome) => void)[] = [];
  /** Why the request is not at its conversation's first lane. */
  #moved: Outcome | undefined;
  count = 0;

  constructor(lanes: Lane[], model: string, shared: Shared) {
    this.#left = lanes;
    this.#home = lanes[0];
    this.#isJudged = lanes.length > 1;
    this.#model = model;
    this.#shared = shared;
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
    const left = this.#left;
    if (left.length === 1) return left.pop();
    const reasons = left.map((lane) => this.#reasonOf(lane));
    if (this.count === 0) this.#moved = reasons[0];
    const awake = reasons.indexOf(undefined);
    return left.splice(awake >= 0 ? awake : this.#soonest(), 1)[0];
  }

  #reasonOf({ upstream }: Lane): Outcome | undefined {
    return this.#shared.states.reason(upstream.name, this.#model);
  }

  #soonest(): number {
    const { states } = this.#shared;
    const times = this.#left.map(({ upstream }) => states.restMs(upstream.name, this.#model));
    return times.indexOf(Math.min(...times));
  }

  #begin(lane: Lane): Try {
    const { states } = this.#shared;
    const { name } = lane.upstream;
    const ofLane = states.ofLane(name).begin();
    const ofModel = states.ofModel(name, this.#model)?.begin();
    let isOver = false;
    return {
      lane,
      ended: (outcome, askedMs) => {
        if (isOver) return false;
        isOver = true;
        const { rest, mayMove } = outcomes[outcome];
        const isOfModel = rest?.ofModel === true;
        const end = (as: Outcome) => {
          // A lane that lacks one model works. A failure of the lane is none of the model's.
          const laneMs = ofLane(isOfModel ? "answered" : as, askedMs);
          const last = isOfModel ? (ofModel ?? states.lacks(name, this.#model).begin()) : ofModel;
          const restMs = laneMs ?? last?.(rest && !isOfModel ? "open" : as);
          if (restMs !== undefined) this.#shared.events.rests(name, as, restMs);
        };
        if (outcome === "failed" && this.#isJudged) this.#failed.push(end);
        else end(outcome);
        this.#note(lane, outcome);
        // Its other keys have the same places.
        if (outcome === "full") this.#leaveOut(upstreamOfLane(name));
        const isLast = !mayMove || !this.hasNext;
        if (isLast && this.#failed.length > 0) this.#judge(outcome === "answered");
        return mayMove;
      },
    };
  }

  #leaveOut(upstream: string): void {
    this.#left = this.#left.filter((lane) => upstreamOfLane(lane.upstream.name) !== upstream);
  }

  #judge(isAnswered: boolean): void {
    for (const end of this.#failed.splice(0)) end(isAnswered ? "failed" : "open");
  }

  #note(lane: Lane, outcome: Outcome): void {
    const { events } = this.#shared;
    const { upstream } = lane;
    events.tried(upstream.name, outcome);
    if (outcome === "key_refused") events.keyRefused(upstream.name, keyNameOf(upstream));
    if (lane === this.#home) this.#moved = outcome;
    else if (outcome === "answered" && this.#moved) events.moved(this.#moved);
  }
}
