// The row of Anthropic in `../protocols.ts`: what it can do, and which keys the catalog may give it.

import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { type Capabilities, remoteKeys } from "../capabilities.ts";

/** Anthropic's API, and servers that speak its Messages. Every request names its bound as `max_tokens`, so there is no `outputLimit`. */
export const anthropic = {
  wire: UpstreamProtocol.ANTHROPIC,
  key: { name: "x-api-key" },
  keys: [...remoteKeys, "inlineImages", "betas", "blockTypes", "autoCache"],
  serves: {
    chat: { responses: true, chat: "translated", lacksCompact: true, files: "pdf" },
  },
} as const satisfies Capabilities;

/**
 * The beta features that an upstream may be asked for, where the catalog does not say. They are those of Claude Code 2.1, of the
 * computer tool, of caches and of preserved thinking. None of them costs what a catalog cannot price.
 */
export const usualBetas = [
  "advanced-tool-use-2025-11-20",
  "claude-code-20250219",
  "computer-use-2025-01-24",
  "computer-use-2025-11-24",
  "context-management-2025-06-27",
  "effort-2025-11-24",
  "extended-cache-ttl-2025-04-11",
  "fine-grained-tool-streaming-2025-05-14",
  "interleaved-thinking-2025-05-14",
  "mid-conversation-tool-changes-2026-07-01",
  "per-turn-control-2026-07-01",
  "prompt-caching-2024-07-31",
  "thinking-binding-controls-2026-08-01",
  "thinking-token-count-2026-05-13",
  "token-counting-2024-11-01",
] as const;
