/**
 * Imported by a process of a test. At its parent's request it reports the longest time for which its event loop was blocked since the last
 * report, or its memory after a collection. It counts the CPU time of the loop's thread between two ticks. On a machine without a free core the loop waits too, but no
 * request causes that.
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
  if (message === "loop") {
    process.send?.({ loopMs: worstMs });
    worstMs = 0;
  } else if (message === "memory") {
    // Its only pages are those in use then.
    globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
    process.send?.({ residentBytes: process.memoryUsage.rss() });
  }
});
// The channel to the parent does not keep the process alive.
process.channel?.unref();

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
