import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { nextPort, untilReady } from "./ports.ts";
import { type ProgramOptions, startProgram, targetCore } from "./processes.ts";
import { postRequest } from "./requests.ts";
import type { Target } from "./target.ts";

const folder = fileURLToPath(new URL("./portkey", import.meta.url));
const gateway = "./portkey/node_modules/@portkey-ai/gateway/build/start-server.js";

/** Answers 200 as soon as the program listens. */
export const portkeyReadyPath = "/";

/** Installs Portkey's gateway below the bench, unless it is there. Throws where that is impossible. */
export function installPortkey(): void {
  if (existsSync(new URL(gateway, import.meta.url))) return;
  process.stderr.write("installing Portkey's gateway into bench/portkey …\n");
  const args = ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", args, { stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`npm ${args.slice(0, 2).join(" ")} bench/portkey failed`);
}

/** Its program and its options in production: without the console that shows requests. */
export function portkeyProgram(port: number): [file: string, options: ProgramOptions] {
  const env = { NODE_ENV: "production" };
  return [gateway, { args: [`--port=${port}`, "--headless"], env, core: targetCore }];
}

/** Starts it. The headers of each request name the mock as the model server. */
export async function startPortkey(upstreamPort: number): Promise<Target & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const port = await nextPort();
  const child = stack.use(startProgram(...portkeyProgram(port)));
  await Promise.race([untilReady(port, portkeyReadyPath), child.ended]);
  const headers = (path = "") => ({
    authorization: "Bearer key-of-the-model-server",
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}${path}/v1`,
  });
  const owned = stack.move();
  return {
    name: "portkey",
    port,
    pids: [child.pid],
    requests: {
      json: [postRequest("json", "/v1/responses", headers())],
      stream: [postRequest("stream", "/v1/responses", headers())],
      prompt: [postRequest("prompt", "/v1/responses", headers())],
      paced: [postRequest("paced", "/v1/responses", headers("/paced"))],
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
