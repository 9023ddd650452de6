import { monitorEventLoopDelay } from "node:perf_hooks";

/** Imported by a process of a test: tells its parent, when asked, the longest delay of its event loop since the last time. */

const resolutionMs = 5;
const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
histogram.enable();
process.on("message", (message) => {
  if (message !== "loop") return;
  process.send?.({ loopMs: Math.max(0, histogram.max / 1e6 - resolutionMs) });
  histogram.reset();
});
// The channel to the parent keeps no process alive.
process.channel?.unref();
