import { join } from "node:path";
import { scratchFolder } from "./genmesh.ts";
import { host, nextPort, untilReady } from "./ports.ts";
import { startBinary, targetCore } from "./processes.ts";
import { models, textRequests } from "./requests.ts";
import type { Target } from "./target.ts";

/** Names GoModel's binary, a gateway in Go without accounts of money. Without it the column is empty. */
export const goModelVariable = "GENMESH_BENCH_GOMODEL";

/** Starts it with its defaults. The mock is its only model server, and it has no network for its list of models. */
export async function startGoModel(
  binary: string,
  upstreamPort: number,
): Promise<Target & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const folder = await scratchFolder(stack);
  const port = await nextPort();
  const env = {
    PORT: `${port}`,
    HOME: folder,
    MODEL_LIST_URL: "",
    GOMODEL_CACHE_DIR: join(folder, "cache"),
    SQLITE_PATH: join(folder, "gomodel.db"),
    GOMODEL_MASTER_KEY: "key-of-the-bench",
    CONFIGURED_PROVIDER_MODELS_MODE: "allowlist",
    OPENAI_API_KEY: "key-of-the-model-server",
    OPENAI_BASE_URL: `http://${host}:${upstreamPort}/v1`,
    OPENAI_MODELS: models.chat,
    OPENAI_PACED_API_KEY: "key-of-the-model-server",
    OPENAI_PACED_BASE_URL: `http://${host}:${upstreamPort}/paced/v1`,
    OPENAI_PACED_MODELS: models.paced,
  };
  const child = stack.use(startBinary(binary, { env, folder, core: targetCore }));
  await Promise.race([untilReady(port, "/health"), child.ended]);
  const owned = stack.move();
  return {
    name: "gomodel",
    port,
    pids: [child.pid],
    requests: textRequests({ authorization: "Bearer key-of-the-bench" }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
