// Settings that all threads of a process have: a bounded heap, no secrets and no output.

import { Writable } from "node:stream";
import type { WorkerOptions } from "node:worker_threads";

/**
 * Young generation of a thread, in MiB: three times the value of `--max-semi-space-size`. With the usual 48, all 48 stay
 * resident.
 */
const youngMib = 12;

/**
 * Settings of a thread of this process. An operator who looks at the process sees the name. Its JavaScript heap has at most
 * `heapMib`.
 */
export function threadOptions(name: string, heapMib: number): WorkerOptions {
  return {
    name,
    // The thread needs neither the process's flags nor its environment, where secrets are.
    execArgv: [],
    env: {},
    // Output of libraries must not get into the process's own output.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: heapMib, maxYoungGenerationSizeMb: youngMib },
  };
}

/**
 * To be called in the thread itself: from then on it discards the output of its libraries. The process cannot discard it by
 * reading. A thread whose output is read keeps its process alive, even after `unref`.
 */
export function muteThread(): void {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  for (const stream of [process.stdout, process.stderr]) stream.write = nowhere.write.bind(nowhere);
}
