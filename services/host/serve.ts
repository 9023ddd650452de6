// Runs a process from its start to its end: log, signals, ready line, drain. `main.ts` calls it. It calls `role-all.ts` or `role.ts`,
// which start the services in the process and tell when they are ready.

import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { traceFields } from "#kit/telemetry/spans.ts";
import { systemClock } from "#kit/time/clock.ts";
import type { Config } from "./config.ts";
import { consoleLine } from "./console-address.ts";
import { openTelemetry, type ProcessOptions } from "./context.ts";
import { letIdleMemoryGo } from "./idle-memory.ts";

/** npm passes on a Ctrl-C that the terminal has sent to this process already. Within these milliseconds the two count as one. */
const oneSignalMs = 1_000;
/** Milliseconds between two ticks of a timer that only keeps the process alive. Any long time will do. */
const aliveTickMs = 60 * 60_000;

/** Runs until SIGTERM or SIGINT, then drains. A second signal ends the drain at once. */
export async function serve(config: Config): Promise<void> {
  const fields = config.telemetry && traceFields;
  const forward = config.telemetry?.logs && (await import("./telemetry-logs.ts")).forwardLine;
  const log = createLogger(config.logLevel, await terminal(config), fields, forward);
  const metrics = createMetrics({ processMetrics: true });
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
  // Background work sleeps without keeping the process alive. Before its ports listen, only this does.
  const alive = setInterval(() => {}, aliveTickMs);
  using _memory = letIdleMemoryGo();
  try {
    // Disposed of last, so that it also sends the spans of the others' end.
    await using _telemetry = await openTelemetry(config, { log, metrics });
    await using running = await start(config, { log, signal: stop.signal, metrics });
    isReady = true;
    log.info({ url: running.opsUrl }, "health and metrics");
    process.stdout.write(`${running.banner}\n`);
    running.shown();
    if (!stop.signal.aborted) {
      await new Promise<void>((resolve) => {
        stop.signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    const late = setTimeout(
      () => hurry.abort(new Error("the drain took too long")),
      config.drainMs,
    );
    await running.drain(hurry.signal);
    clearTimeout(late);
    log.info("stopped");
  } catch (error) {
    // A start that is asked to stop ends, wherever it was. An error of that is no fault.
    if (isReady || !stop.signal.aborted) throw error;
    log.info({ err: error }, "stopped before it was ready");
  } finally {
    clearInterval(alive);
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
  }
}

/** Short lines for a person who reads them in a terminal. Undefined: JSON lines, for machines. */
async function terminal({ logColours }: Config) {
  if (!process.stderr.isTTY) return undefined;
  const { openTerminal } = await import("#kit/base/log-terminal.ts");
  return openTerminal({ colours: logColours });
}

/** The parts of a process of any role that serving needs. */
interface Running extends AsyncDisposable {
  /** The line on standard output. */
  banner: string;
  /** URL of metrics and health. */
  opsUrl: string;
  /** To be called once the line was shown. */
  shown(): void;
  drain(signal: AbortSignal): Promise<void>;
}

/** Loads and starts the parts that the role needs. */
async function start(config: Config, options: ProcessOptions): Promise<Running> {
  const { role } = config;
  if (role === "all") {
    const { startRoleAll } = await import("./role-all.ts");
    const running = await startRoleAll(config, options);
    const { apiKey } = running.bootstrap;
    const ready = `genmesh is ready: ${running.baseUrl}${apiKey ? `  key: ${apiKey}` : ""}`;
    const banner = [ready, ...consoleLine(config, running.baseUrl)].join("\n");
    return Object.assign(running, { banner, shown: () => running.bootstrap.shown() });
  }
  const { startRole } = await import("./role.ts");
  const process = await startRole(config, options);
  const banner = `genmesh${role === "gateway" ? "" : ` ${role}`} is ready: ${process.url}`;
  return Object.assign(process, { banner, shown() {} });
}
