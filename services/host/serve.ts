import { systemClock } from "#kit/clock.ts";
import { createLogger } from "#kit/logger.ts";
import type { Config } from "./config.ts";
import { startMesh } from "./mesh.ts";

/** npm passes a Ctrl-C on which the terminal has sent to this process already: within these milliseconds it is one. */
const oneSignalMs = 1_000;
/** Milliseconds; any long time does. */
const aliveTickMs = 60 * 60_000;

/** Runs until SIGTERM or SIGINT, then drains. A second signal ends the drain at once. */
export async function serve(config: Config): Promise<void> {
  const log = createLogger(config.logLevel);
  const stop = new AbortController();
  const hurry = new AbortController();
  let stoppedAtMs = 0;
  let isReady = false;
  const onSignal = (signal: string) => {
    if (!stop.signal.aborted) {
      stoppedAtMs = systemClock.now();
      log.info({ signal }, "stopping");
      stop.abort();
    } else if (systemClock.now() - stoppedAtMs > oneSignalMs) {
      hurry.abort(new Error("second signal"));
    }
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  // Background work sleeps without holding the process; before its ports listen, nothing else would.
  const alive = setInterval(() => {}, aliveTickMs);
  try {
    await using mesh = await startMesh(config, { log, signal: stop.signal });
    isReady = true;
    const { apiKey } = mesh.bootstrap;
    process.stdout.write(`genmesh is ready: ${mesh.baseUrl}${apiKey ? `  key: ${apiKey}` : ""}\n`);
    mesh.bootstrap.shown();
    if (!stop.signal.aborted) {
      await new Promise<void>((resolve) => {
        stop.signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    const late = setTimeout(
      () => hurry.abort(new Error("the drain took too long")),
      config.drainMs,
    );
    await mesh.drain(hurry.signal);
    clearTimeout(late);
    log.info("stopped");
  } catch (error) {
    // A start that is told to stop stops, wherever it was; what breaks off then is no fault.
    if (isReady || !stop.signal.aborted) throw error;
    log.info({ err: error }, "stopped before it was ready");
  } finally {
    clearInterval(alive);
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
  }
}
