import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { PlannedProcess } from "../../services/host/run-mesh/plan.ts";
import { programFile } from "../support/bundles.ts";
import { thisCheckout } from "../support/checkout.ts";
import { until } from "../support/until.ts";

/** A process of a mesh that tests can kill and pause. */
export interface MeshProcess {
  readonly name: string;
  readonly role: PlannedProcess["role"];
  /** Its address. For a gateway, its public origin. */
  readonly url: string;
  /** Starts it, also again after its end. With `checkout` it runs another checkout's code. Resolves when it is ready. */
  start(checkout?: string): Promise<void>;
  /** Ends it at once. It stays down until {@link start}. */
  kill(): Promise<void>;
  /** Sends SIGTERM. Resolves with its exit code when it has drained. */
  stop(): Promise<number | null>;
  /** Pauses it, and lets it continue. */
  pause(): void;
  resume(): void;
  /** Body and status of a probe: `healthz`, `readyz`. */
  probe(path: string): Promise<string>;
}

/** Settings of a process. */
export interface ProcessSetup {
  /** Gets each line of its output. */
  log(name: string, line: string): void;
  /** Milliseconds by which its clock is ahead. */
  clockAheadMs?: number | undefined;
}

const clock = fileURLToPath(new URL("../support/clock-ahead.ts", import.meta.url));
/** Milliseconds. All processes of a mesh and other work share the cores of a test machine. */
const startWithinMs = 120_000;
/** Milliseconds for a probe. A process that hangs longer is not healthy. */
const probeMs = 2_000;

/** Prepares a process without starting it. */
export function meshProcess(planned: PlannedProcess, setup: ProcessSetup): MeshProcess {
  const { name, role, url } = planned;
  let child: ChildProcess | undefined;
  let ended: Promise<unknown> = Promise.resolve();
  const end = async (signal: NodeJS.Signals) => {
    const ending = child;
    if (!ending) return null;
    ending.kill(signal);
    // A paused process does not get the signal.
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
