// Run while the image is built, with a data directory and ports of its own in its environment. It starts the mesh in one process on a new
// data directory, and stops it when it is ready. Then it runs the operator command's help, and loads code that only other roles or settings
// need. All compiled code stays in NODE_COMPILE_CACHE. A container that cannot write there starts with it.
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const bundles = new URL("../dist/", import.meta.url);
const host = fileURLToPath(new URL("services/host/", bundles));

/** Runs a file of the host. With `stopAtReady` it is stopped at its first line. Rejects unless the exit code is 0. */
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

await run("main.js", [], { stopAtReady: true });
await run("cli/main.js", ["--help"], { stopAtReady: false });

// The roles of the mesh, their calls and their stores, the tokenizer, the client of upstreams. All code that is loaded on demand is in one
// of these. Loading it has no other effect.
const chunks = new URL("chunks/", bundles);
for (const file of await readdir(chunks)) await import(new URL(file, chunks).href);
// By `require`, like its adapter.
createRequire(bundles)("mongodb");
