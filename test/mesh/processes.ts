import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { PlannedProcess } from "../../services/host/run-mesh/plan.ts";
import { programFile } from "../support/bundles.ts";
import { thisCheckout } from "../support/checkout.ts";
import { until } from "../support/until.ts";

/** A process of a mesh that tests can hurt. */
export interface MeshProcess {
  readonly name: string;
  readonly role: PlannedProcess["role"];
  /** Where it is called; the gateway's public origin. */
  readonly url: string;
  /** Starts it, again where it has ended; `checkout`: another one's code than this. Resolves when it is ready. */
  start(checkout?: string): Promise<void>;
  /** Ends it at once; it stays down until {@link start}. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with its exit code when it has drained. */
  stop(): Promise<number | null>;
  /** Stops its time, and lets it go on. */
  pause(): void;
  resume(): void;
  /** Body and status of a probe: `healthz`, `readyz`. */
  probe(path: string): Promise<string>;
}

/** What it is run with. */
export interface ProcessSetup {
  /** Takes each line that it says. */
  log(name: string, line: string): void;
  /** Milliseconds by which its clock is off. */
  clockAheadMs?: number | undefined;
}

const clock = fileURLToPath(new URL("../support/clock-ahead.ts", import.meta.url));
/** Milliseconds: all of a mesh compete for the cores of a test machine with all else that runs there. */
const startWithinMs = 120_000;
/** Milliseconds for a probe: what hangs for so long is not well. */
const probeMs = 2_000;

/** Plans a process; it is not started yet. */
export function meshProcess(planned: PlannedProcess, setup: ProcessSetup): MeshProcess {
  const { name, role, url } = planned;
  let child: ChildProcess | undefined;
  let ended: Promise<unknown> = Promise.resolve();
  const end = async (signal: NodeJS.Signals) => {
    const ending = child;
    if (!ending) return null;
    ending.kill(signal);
    // One that is paused does not hear.
    ending.kill("SIGCONT");
    await ended;
    child = undefined;
    return ending.exitCode;
  };
  return {
    name,
    role,
    url,
    async start(checkout = thisCheckout) {
      const started = spawnProcess(planned, setup, checkout);
      child = started.child;
      ended = started.ended;
      await until(
        `${name} to be ready`,
        () => {
          if (started.child.exitCode !== null) throw new Error(`${name} ended at its start`);
          return started.isReady();
        },
        { withinMs: startWithinMs },
      );
    },
    kill: async () => void (await end("SIGKILL")),
    stop: () => end("SIGTERM"),
    pause: () => void child?.kill("SIGSTOP"),
    resume: () => void child?.kill("SIGCONT"),
    async probe(path) {
      const signal = AbortSignal.timeout(probeMs);
      const answer = await fetch(`${url}/${path}`, { signal });
      return `${answer.status} ${(await answer.text()).trim()}`;
    },
  };
}

function spawnProcess(
  planned: PlannedProcess,
  { log, clockAheadMs = 0 }: ProcessSetup,
  checkout: string,
) {
  const program = "services/host/main.ts";
  const main = checkout === thisCheckout ? programFile(program) : join(checkout, program);
  const args = ["--disable-warning=ExperimentalWarning", "--import", clock, main];
  const child = spawn(process.execPath, args, {
    env: { ...planned.env, TEST_CLOCK_AHEAD_MS: `${clockAheadMs}` },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let isReady = false;
  const readers = [child.stdout, child.stderr].map((stream) => createInterface({ input: stream }));
  for (const reader of readers) {
    reader.on("line", (line) => {
      isReady ||= / is ready: \S/.test(line);
      log(planned.name, line);
    });
  }
  return { child, ended: once(child, "close"), isReady: () => isReady };
}
