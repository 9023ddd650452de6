import { Writable } from "node:stream";
import type { WorkerOptions } from "node:worker_threads";

/** Young generation of a thread, in MiB: three times what `--max-semi-space-size` would be; the usual 48 stay resident. */
const youngMib = 12;

/** Settings of a thread of our own, named for an operator who looks at the process; its JavaScript heap has `heapMib` at most. */
export function threadOptions(name: string, heapMib: number): WorkerOptions {
  return {
    name,
    // The thread needs neither the process's flags nor its environment, where secrets are.
    execArgv: [],
    env: {},
    // What libraries print must not get into the process's own output.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: heapMib, maxYoungGenerationSizeMb: youngMib },
  };
}

/**
 * To be called in the thread itself: what its libraries print from then on goes nowhere. It cannot be read away from
 * outside, because a thread whose output is read keeps its process alive, also after `unref`.
 */
export function muteThread(): void {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  for (const stream of [process.stdout, process.stderr]) stream.write = nowhere.write.bind(nowhere);
}
