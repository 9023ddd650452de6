import { createHash } from "node:crypto";

/**
 * What {@link work} costs on the machine of the reference, in ms: a bound of time means nothing without a speed. A machine
 * that is half as fast has twice the bound.
 */
const referenceMs = 45;

/** A piece of work like that of a request, by the time of its thread: bytes to text to values and back, and a hash. */
function work(): number {
  const from = process.threadCpuUsage();
  const text = JSON.stringify(Array.from({ length: 100_000 }, (_, at) => ({ at: `${at}` })));
  createHash("sha256")
    .update(JSON.stringify(JSON.parse(text)))
    .digest();
  const { user, system } = process.threadCpuUsage(from);
  return (user + system) / 1_000;
}

/** How much slower than the reference this machine is now; never less than 1. */
export function slowness(): number {
  return Math.max(1, Math.min(...Array.from({ length: 5 }, work)) / referenceMs);
}
