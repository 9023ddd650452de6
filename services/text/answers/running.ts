import type { Stop } from "#kit/base/stop.ts";
import { UnderWay } from "../base/under-way.ts";
import { type StopReason, stopped } from "./stop-reason.ts";

/** The requests that run in this process. */
export class Running {
  readonly #stops = new Set<Stop>();
  readonly #underWay = new UnderWay();
  #closedFor: StopReason | undefined;

  /** A request begins. It is stopped at once where the process takes none any more. */
  began(stop: Stop): void {
    this.#stops.add(stop);
    this.#underWay.began();
    if (this.#closedFor) stop.abort(stopped(this.#closedFor));
  }

  /** Nothing of the request runs any longer. May be called twice. */
  ended(stop: Stop): void {
    if (this.#stops.delete(stop)) this.#underWay.ended();
  }

  /** Resolves when nothing runs. */
  whenNone(): Promise<void> {
    return this.#underWay.whenNone();
  }

  /** Stops everything that runs, and everything that begins later. */
  stopAll(reason: StopReason): void {
    this.#closedFor = reason;
    for (const stop of [...this.#stops]) stop.abort(stopped(reason));
  }
}
