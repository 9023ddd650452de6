// Declares what the store of operators must promise. `operator-store-documents.ts` keeps the promises.

import type { Operator } from "./operator.ts";

/**
 * Operators who sign in by name. Each transition is atomic for every client of the store, and durable when answered. All refuse with
 * SERVICE_UNAVAILABLE where the store is away.
 */
export interface OperatorStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /** Adds an operator. False where one of the name is there, perhaps itself: nothing is written then. */
  add(operator: Operator): Promise<boolean>;
  find(name: string): Promise<Operator | undefined>;
  /** All operators, the oldest first. */
  list(): Promise<Operator[]>;
  /**
   * Makes a pure step from the operator as it is to the one that the step answers. Of steps at once each begins where another has ended.
   * Undefined where the step wants no change, or there is no such operator.
   */
  change(
    name: string,
    step: (operator: Operator) => Operator | undefined,
  ): Promise<Operator | undefined>;
  /** Removes an operator. A repeat does nothing. */
  remove(name: string): Promise<void>;
}
