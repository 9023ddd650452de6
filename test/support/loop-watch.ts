/**
 * Imported by a process of a test: tells its parent, when asked, the longest time for which its event loop was kept since
 * the last time. What counts is what the loop's thread computed between two ticks, not what went by: a machine that has
 * no core for it keeps it too, and no request is at fault.
 */

const tickMs = 2;
let worstMs = 0;
let lastMs = cpuMs();
setInterval(() => {
  const nowMs = cpuMs();
  worstMs = Math.max(worstMs, nowMs - lastMs);
  lastMs = nowMs;
}, tickMs).unref();

process.on("message", (message) => {
  if (message !== "loop") return;
  process.send?.({ loopMs: worstMs });
  worstMs = 0;
});
// The channel to the parent keeps no process alive.
process.channel?.unref();

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
