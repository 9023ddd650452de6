import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { genmeshEnv, genmeshNodeArgs, genmeshProgram, scratchFolder } from "./genmesh.ts";
import { portkeyProgram, portkeyReadyPath } from "./portkey.ts";
import { host, nextPort, untilReady } from "./ports.ts";
import { type ProgramOptions, residentBytesOf, startProgram, targetCore } from "./processes.ts";
import type { Contestant } from "./rounds.ts";

/** Milliseconds from the first answer to the look at the memory. Memory of the start is freed by then. */
const settleMs = 1_500;
const mib = 1_024 * 1_024;

/**
 * Measures starts of one process until it answers, and its memory without work. Each start of genmesh has a data directory of its own.
 * Compiled code is kept in a folder of the bench, so that only the very first start compiles.
 */
export async function startContestants(stack: AsyncDisposableStack): Promise<Contestant[]> {
  const folder = await scratchFolder(stack);
  let starts = 0;
  return [
    {
      name: "portkey",
      async measure() {
        const port = await nextPort();
        return measureStart(portkeyProgram(port), port, portkeyReadyPath);
      },
    },
    {
      name: "one",
      async measure() {
        const [port, grpcPort] = [await nextPort(), await nextPort()];
        const own = join(folder, `${starts++}`);
        await mkdir(own);
        const env = {
          ...genmeshEnv,
          HOST: host,
          PORT: `${port}`,
          GRPC_PORT: `${grpcPort}`,
          GENMESH_OPS_PORT: "0",
          TMPDIR: own,
          GENMESH_DATA_DIR: join(own, "data"),
          NODE_COMPILE_CACHE: join(folder, "compiled"),
        };
        return measureStart(
          [genmeshProgram, { env, core: targetCore, nodeArgs: genmeshNodeArgs }],
          port,
          "/readyz",
        );
      },
    },
  ];
}

async function measureStart(
  [file, options]: [file: string, options: ProgramOptions],
  port: number,
  readyPath: string,
) {
  const beganAt = performance.now();
  await using child = startProgram(file, options);
  await Promise.race([untilReady(port, readyPath), child.ended]);
  const startMs = performance.now() - beganAt;
  await delay(settleMs);
  return { startMs, idleMib: residentBytesOf(child.pid) / mib };
}
