import { optionalArray, requiredString } from "#kit/body.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import { isJsonObject, type JsonObject } from "#kit/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { maxTools } from "../limits.ts";
import { fieldOf, objectAt, unsupported } from "./fields.ts";
import { keepToolStateOut } from "./refused.ts";

/** Tools whose calls the caller itself carries out; every other one may put text of its own into the input. */
const callerTools = new Set([
  "function",
  "custom",
  "namespace",
  "local_shell",
  "apply_patch",
  "computer",
  "computer_use_preview",
]);
/** Tools whose properties are the caller's own words (schemas), where no name means anything here. */
const describedTools = new Set(["function", "custom", "namespace"]);

/** What the tools of a request mean for its price. */
export interface CheckedTools {
  count: number;
  /** At least one is carried out upstream. */
  hosted: boolean;
}

/** Does the model take tools of this type? */
export function takesTool(spec: ChatSpec, type: string): boolean {
  return spec.tools.includes("*") || spec.tools.includes(type);
}

/**
 * Checks `tools` and `tool_choice`. Items are forwarded as they are. `chat`: a function's name stands one level deeper.
 * Refuses with UNSUPPORTED_PARAMETER at `tools[i].type` what the model does not take.
 */
export function checkTools(
  body: JsonObject,
  spec: ChatSpec,
  api: "responses" | "chat",
): CheckedTools {
  const tools = optionalArray(body, "tools") ?? [];
  if (tools.length > maxTools) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "tools",
      message: `A request has at most ${maxTools} tools.`,
    });
  }
  let hosted = false;
  for (const [index, value] of tools.entries()) {
    const param = `tools[${index}]`;
    const tool = objectAt(value, param);
    const type = requiredString(tool, "type", { min: 1 }, `${param}.type`);
    if (!takesTool(spec, type)) refuseTool(`${param}.type`, spec);
    if (type === "function") checkFunction(tool, param, api);
    if (!describedTools.has(type)) keepToolStateOut(tool, param);
    hosted ||= !callerTools.has(type);
  }
  const choice = fieldOf(body, "tool_choice");
  if (choice !== undefined && typeof choice !== "string" && !isJsonObject(choice)) {
    refuse(ErrorReason.INVALID_TYPE, { param: "tool_choice" });
  }
  return { count: tools.length, hosted };
}

function checkFunction(tool: JsonObject, param: string, api: "responses" | "chat"): void {
  if (api === "responses") {
    requiredString(tool, "name", { min: 1 }, `${param}.name`);
    return;
  }
  const described = fieldOf(tool, "function");
  if (described === undefined) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: `${param}.function` });
  }
  const path = `${param}.function`;
  requiredString(objectAt(described, path), "name", { min: 1 }, `${path}.name`);
}

function refuseTool(param: string, spec: ChatSpec): never {
  unsupported(
    param,
    spec.tools.length > 0
      ? `The model takes these tools: ${spec.tools.join(", ")}.`
      : "The model takes no tools.",
  );
}
