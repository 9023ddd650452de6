import { betaOfTool } from "../../upstreams/anthropic/betas.ts";
import { unsupported } from "./fields.ts";
import type { FoundBlocks } from "./messages-blocks.ts";
import { refuseTool, takesTool } from "./tools.ts";

/** Families of Anthropic's own tools whose calls the caller carries out. A type is a family and a date. */
const ownTool = /^(bash|computer|memory|text_editor)_\d{8}$/;

/**
 * Checks the type of a tool of Anthropic's own, which only upstreams that speak Messages know. The model's `tools` name its family. The
 * tools that Anthropic runs itself are refused: they cost more than tokens.
 */
export function checkOwnTool(type: string, param: string, found: FoundBlocks): void {
  const [, family] = ownTool.exec(type) ?? [];
  if (family === undefined || !found.isNative) {
    const message = "The model takes tools of the type 'custom' alone. Leave this one out.";
    unsupported(param, message);
  }
  if (!takesTool(found.spec, family)) refuseTool(param, found.spec);
  const beta = betaOfTool(type);
  if (beta !== undefined && !found.natives.every(({ betas }) => betas.includes(beta))) {
    unsupported(param, "The model's upstream does not take this version of the tool.");
  }
  found.described.add(type);
}
