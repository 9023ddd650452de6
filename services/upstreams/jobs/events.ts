// Reports a state that a declaration does not have, so that an operator can add it.

import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";
import type { GenerationRequest } from "../media/port.ts";

/** States that the log has already, by the memory of their process. */
const told = new WeakMap<object, Set<string>>();
/** The most states in the log. An upstream with more gives a text that differs each time. */
const maxTold = 100;

/**
 * An upstream named a state that its declaration does not have. Each such look is counted. The log gets each state once. The task counts as
 * running.
 */
export function unknownState(
  context: Pick<DriverContext, "figures" | "log" | "memory">,
  { name }: Upstream,
  state: string,
  request: GenerationRequest,
): void {
  context.figures.unknownStates.of(name).value++;
  const known = told.get(context.memory) ?? new Set();
  told.set(context.memory, known);
  const key = `${name} ${state}`;
  if (known.has(key) || known.size >= maxTold) return;
  known.add(key);
  const shown = isWordOfItsOwn(state, request) ? state : "another text";
  context.log.warn({ upstream: name, state: shown }, "a media upstream names an unknown state");
}

/** Is it a state of at most four words, and none of a caller's? An upstream may repeat a prompt where a catalog expects the state. */
function isWordOfItsOwn(state: string, request: GenerationRequest): boolean {
  if (!/^\w{1,30}(?:[ .-]\w{1,30}){0,3}$/.test(state)) return false;
  const written = JSON.stringify(request).toLowerCase();
  return !state.split(/[ .-]/).every((word) => written.includes(word.toLowerCase()));
}
