import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";

/** States that the log has already, by the memory of their process. */
const told = new WeakMap<object, Set<string>>();
/** The most states in the log. An upstream with more gives a text that differs each time. */
const maxTold = 100;

/** An upstream named a state that its declaration does not have. The log gets each state once. The task counts as running. */
export function unknownState(
  context: Pick<DriverContext, "log" | "memory">,
  { name }: Upstream,
  state: string,
): void {
  const known = told.get(context.memory) ?? new Set();
  told.set(context.memory, known);
  const key = `${name} ${state}`;
  if (known.has(key) || known.size >= maxTold) return;
  known.add(key);
  // A text with other characters may repeat what a caller wrote.
  const shown = /^[\w .-]{1,60}$/.test(state) ? state : "another text";
  context.log.warn({ upstream: name, state: shown }, "a media upstream names an unknown state");
}
