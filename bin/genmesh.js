#!/usr/bin/env node
// Runs the command on the Node of the install, even where the shell has another one. Plain JavaScript, so that every supported Node
// and older ones can read it.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("../services/host/cli/main.ts", import.meta.url));
// The image has bundles in place of the sources.
const bundle = fileURLToPath(new URL("../dist/services/host/cli/main.js", import.meta.url));
const main = existsSync(source) ? source : bundle;
const own = fileURLToPath(new URL("../node_modules/node/bin/node", import.meta.url));
// The image has its own Node and leaves the package out.
const node = existsSync(own) ? own : process.execPath;
const child = spawn(
  node,
  ["--disable-warning=ExperimentalWarning", main, ...process.argv.slice(2)],
  {
    stdio: "inherit",
    // Compiled code that is kept starts in half the time. Where Node cannot write there, it runs without.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"), ...process.env },
  },
);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  process.stderr.write(`genmesh: ${error.message}\n`);
  process.exitCode = 1;
});
child.on("exit", (code, signal) => {
  process.exitCode = signal ? 1 : (code ?? 1);
});
