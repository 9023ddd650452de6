import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "./genmesh.ts";
import { host, nextPort, untilReady } from "./ports.ts";
import { startBinary, targetCore } from "./processes.ts";
import { models, textRequests } from "./requests.ts";
import type { Target } from "./target.ts";

/**
 * Names the program `litellm` of a Python environment with `litellm[proxy]`. Without it the column is empty.
 * https://docs.litellm.ai/docs/proxy/quick_start
 */
export const liteLlmVariable = "GENMESH_BENCH_LITELLM";

const key = "sk-key-of-the-bench";

/** Starts LiteLLM's proxy as one worker, without a database, so it checks one key and counts no money. */
export async function startLiteLlm(
  program: string,
  upstreamPort: number,
): Promise<Target & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const folder = await scratchFolder(stack);
  const port = await nextPort();
  const model = (name: string, path: string) => ({
    model_name: name,
    litellm_params: {
      model: `openai/${name}`,
      api_base: `http://${host}:${upstreamPort}${path}/v1`,
      api_key: "key-of-the-model-server",
    },
  });
  const config = join(folder, "config.yaml");
  // YAML takes JSON.
  await writeFile(
    config,
    JSON.stringify({
      model_list: [model(models.chat, ""), model(models.paced, "/paced")],
      general_settings: { master_key: key },
      litellm_settings: { telemetry: false },
    }),
  );
  const child = stack.use(
    startBinary(program, {
      args: ["--config", config, "--host", host, "--port", `${port}`, "--num_workers", "1"],
      // It has no network for its list of prices, and writes no line for each request.
      env: { HOME: folder, LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR" },
      folder,
      core: targetCore,
    }),
  );
  await Promise.race([untilReady(port, "/health/liveliness"), child.ended]);
  const owned = stack.move();
  return {
    name: "litellm",
    port,
    pids: [child.pid],
    requests: textRequests({ authorization: `Bearer ${key}` }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
