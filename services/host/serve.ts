import { createLogger } from "#kit/logger.ts";
import type { Config } from "./config.ts";
import { startMesh } from "./mesh.ts";

/** Runs until SIGTERM or SIGINT, then drains. A second signal ends the drain at once. */
export async function serve(config: Config): Promise<void> {
  const log = createLogger(config.logLevel);
  const stop = new AbortController();
  const hurry = new AbortController();
  const onSignal = (signal: string) => {
    if (stop.signal.aborted) hurry.abort(new Error("second signal"));
    else {
      log.info({ signal }, "stopping");
      stop.abort();
    }
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  try {
    await using mesh = await startMesh(config, { log, signal: stop.signal });
    const { apiKey } = mesh.bootstrap;
    process.stdout.write(`genmesh is ready: ${mesh.baseUrl}${apiKey ? `  key: ${apiKey}` : ""}\n`);
    mesh.bootstrap.shown();
    if (!stop.signal.aborted) {
      await new Promise<void>((resolve) => {
        stop.signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    await mesh.drain(AbortSignal.any([AbortSignal.timeout(config.drainMs), hurry.signal]));
    log.info("stopped");
  } finally {
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
  }
}
