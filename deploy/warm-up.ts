// Run while the image is built, with a data directory and ports of its own in its environment: starts the mesh in one process on a new data directory, stops it when it is ready, and
// asks the operator command for its help; then loads what neither of them needs but another role, or another setting, does.
// What all of them compiled stays in NODE_COMPILE_CACHE, and a container that cannot write there starts with it.
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const bundles = new URL("../dist/", import.meta.url);
const host = fileURLToPath(new URL("services/host/", bundles));

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

await run("main.js", [], { stopAtReady: true });
await run("cli/main.js", ["--help"], { stopAtReady: false });

// The roles of the mesh, their wire and their stores, the tokenizer, the client of upstreams: all that is loaded when it is
// needed is one of these, and loading it does nothing more.
const chunks = new URL("chunks/", bundles);
for (const file of await readdir(chunks)) await import(new URL(file, chunks).href);
// By `require`, as its adapter does.
createRequire(bundles)("mongodb");
