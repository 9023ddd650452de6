import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const kit = new URL("./thread.ts", import.meta.url);
const inThread = `import("${kit}").then(({ muteThread }) => {

  muteThread();
  console.log("printed");
  console.error("complained");
  const { parentPort } = require("node:worker_threads");
  parentPort.on("message", () => parentPort.postMessage(Object.keys(process.env)));
});`;
const inProcess = `import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { threadOptions } from "${kit}";
const worker = new Worker(${JSON.stringify(inThread)}, { eval: true, ...threadOptions("t", 64) });
worker.postMessage("");
console.log((await once(worker, "message"))[0].length);
worker.unref();`;

test("a thread of ours has no environment, prints nothing and holds no process", async () => {
  const args = ["--input-type=module", "-e", inProcess];
  // A thread that is held goes on for ever.
  const run = promisify(execFile)(process.execPath, args, { timeout: 50_000 });
  const { stdout, stderr } = await run;
  expect([stdout, stderr]).toEqual(["0\n", ""]);
});
