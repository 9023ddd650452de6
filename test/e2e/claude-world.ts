import type { AnthropicDouble } from "../support/upstreams/anthropic.ts";
import type { WorldOptions } from "./world.ts";

/** The operator's key at the double. */
export const claudeKey = "sk-ant-of-the-operator";

type Models = ReturnType<Exclude<NonNullable<WorldOptions["catalog"]>, string>>["models"];

/** Options of a world with an upstream `claude`, which speaks Messages, and with models beside the usual ones. */
export function withClaude(
  double: Pick<AnthropicDouble, "baseUrl">,
  models: Models,
  env: Record<string, string> = {},
): WorldOptions {
  const claude = {
    protocol: "anthropic",
    apiKeyEnv: "ANTHROPIC_KEY",
    baseUrl: double.baseUrl,
  };
  return {
    env: { ANTHROPIC_KEY: claudeKey, ...env },
    catalog: (usual) => ({
      ...usual,
      upstreams: { ...usual.upstreams, claude },
      models: [...usual.models, ...models],
    }),
  };
}
