import { createHash } from "node:crypto";

/**
 * The cost of {@link work} on the reference machine, in ms. A time limit means nothing without a speed. A machine of half the speed has
 * twice the limit.
 */
const referenceMs = 45;

/** Work like that of a request, measured by the time of its thread: bytes to text to values and back, and a hash. */
function work(): number {
  const from = process.threadCpuUsage();
  const text = JSON.stringify(Array.from({ length: 100_000 }, (_, at) => ({ at: `${at}` })));
  createHash("sha256")
    .update(JSON.stringify(JSON.parse(text)))
    .digest();
  const { user, system } = process.threadCpuUsage(from);
  return (user + system) / 1_000;
}

/** The factor by which this machine is now slower than the reference, at least 1. */
export function slowness(): number {
  return Math.max(1, Math.min(...Array.from({ length: 5 }, work)) / referenceMs);
}
