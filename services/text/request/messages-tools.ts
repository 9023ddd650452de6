// Checks tools of Anthropic's own in a Messages request: those that the caller runs and those that Anthropic runs. Other tools
// are checked in `messages.ts`.

import { optionalNumber } from "#common/words/body.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { betaOfTool, takesField } from "../../upstreams/anthropic/betas.ts";
import { hostFamily } from "../../upstreams/text/host-tools.ts";
import { unsupported } from "./fields.ts";
import type { FoundBlocks } from "./messages-blocks.ts";
import { refuseTool, takesTool } from "./tools.ts";

/** Families of Anthropic's own tools whose calls the caller carries out. A type is a family and a date. */
const ownTool = /^(bash|computer|memory|text_editor)_\d{8}$/;

/**
 * Checks the type of a tool of Anthropic's own, which only upstreams that speak Messages know. The model's `tools` name its family.
 * `param`: the path of the tool.
 */
export function checkOwnTool(tool: JsonObject, param: string, found: FoundBlocks): void {
  const type = `${tool.type}`;
  const [, own] = ownTool.exec(type) ?? [];
  const family = own ?? hostFamily(type);
  if (family === undefined || !found.isNative) {
    const message = "The model takes tools of the type 'custom' alone. Leave this one out.";
    unsupported(`${param}.type`, message);
  }
  if (!takesTool(found.spec, family)) refuseTool(`${param}.type`, found.spec);
  const beta = betaOfTool(type);
  if (beta !== undefined && !found.natives.every(({ betas }) => betas.includes(beta))) {
    unsupported(`${param}.type`, "The model's upstream does not take this version of the tool.");
  }
  found.described.add(type);
  if (own === undefined) checkHostTool(tool, family, param, found);
}

/** Checks a tool that Anthropic runs itself. Its calls need a price, except that a search for tools costs no more than tokens. */
function checkHostTool(tool: JsonObject, family: string, param: string, found: FoundBlocks): void {
  const { spec, natives, hosted } = found;
  hosted.add(`${tool.type}`);
  if (family === "tool_search") {
    if (natives.every(({ betas }) => takesField(betas, "advanced-tool-use-"))) return;
    unsupported(`${param}.type`, "The model's upstream does not search for tools.");
  }
  const { toolCalls = {} } = spec.prices ?? {};
  if (!Object.hasOwn(toolCalls, family)) {
    unsupported(`${param}.type`, `The model has no price for calls of '${family}'. Leave it out.`);
  }
  optionalNumber(tool, "max_uses", { integer: true, min: 1 }, `${param}.max_uses`);
}
