// Run while the image is built: starts the mesh in one process on a new data directory, stops it when it is ready, and
// asks the operator command for its help. What they compiled stays in NODE_COMPILE_CACHE.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const host = fileURLToPath(new URL("../services/host/", import.meta.url));

/** Runs a file of the host; with `stopAtReady` it is told to stop at its first line. Rejects unless it ends with 0. */
function run(file: string, args: string[], { stopAtReady }: { stopAtReady: boolean }) {
  return new Promise<void>((resolve, reject) => {
    const flags = process.execArgv;
    const child = spawn(process.execPath, [...flags, `${host}${file}`, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    child.stdout.once("data", () => stopAtReady && child.kill("SIGTERM"));
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0 ? resolve() : reject(new Error(`${file} ended with ${code}`)),
    );
  });
}

await run("main.ts", [], { stopAtReady: true });
await run("cli/main.ts", ["--help"], { stopAtReady: false });
