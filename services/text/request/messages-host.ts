// Checks calls and results of tools that Anthropic runs itself. Only upstreams that speak Messages know them.

import { requiredString } from "#common/words/body.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { hostBlocks, hostCall } from "../../upstreams/text/host-tools.ts";
import { objectAt } from "./fields.ts";
import { checkResult } from "./messages-added.ts";
import type { FoundBlocks } from "./messages-blocks.ts";

/** Is it a call or a result of a tool that Anthropic ran, at a place and an upstream that take these? */
export function isOfHost(type: string, place: string, { isNative }: FoundBlocks): boolean {
  return isNative && place === "assistant" && hostBlocks.has(type);
}

/** Checks such a block. It passes as it came. Only Anthropic knows how many tokens a result has: a page can be a PDF. */
export function checkHostBlock(block: JsonObject, param: string, found: FoundBlocks): void {
  if (block.type === hostCall) {
    requiredString(block, "id", { min: 1 }, `${param}.id`);
    requiredString(block, "name", { min: 1 }, `${param}.name`);
    found.inputs.push(objectAt(block.input, `${param}.input`));
    return;
  }
  requiredString(block, "tool_use_id", { min: 1 }, `${param}.tool_use_id`);
  checkResult(block, param, found.opaque);
  found.hasHostResults = true;
}
