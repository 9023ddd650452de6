// Run while the image is built: starts the mesh in one process on a new data directory, stops it when it is ready, and
// asks the operator command for its help; then loads what neither of them needs but another role, or another setting, does.
// What all of them compiled stays in NODE_COMPILE_CACHE, and a container that cannot write there starts with it.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
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

// The roles of the mesh, their wire and their stores.
await import("../services/host/role-gateway.ts");
await import("../services/host/role-service.ts");
await import("../services/host/migrate.ts");
await import("../services/kit/blobs/s3.ts");
await import("../services/kit/queue/jetstream.ts");
await import("../services/kit/telemetry/otel.ts");
await import("../services/kit/mongo/connect.ts");
// By `require`, as its adapter does.
createRequire(import.meta.url)("mongodb");
// What the first text request, and the first to an upstream over HTTP, load.
await import("gpt-tokenizer/encoding/o200k_base");
await import("undici");
