// Turns the thinking that a Messages request asks for into the effort of a model. Claude's clients send it to every model, so a
// near effort is taken.

import {
  optionalNumber,
  optionalObject,
  optionalString,
  requiredString,
} from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { fieldOf, objectAt } from "./fields.ts";

const types: readonly string[] = ["enabled", "adaptive", "disabled"];
/** The least budget of thinking, by Anthropic's reference. */
const leastBudget = 1_024;
/** Tokens that an answer has beside its budget of thinking, where its bound falls. */
const besideBudget = 1_024;
/** Efforts from the lowest up, in the words of OpenAI and Anthropic. */
const ranks: readonly string[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/**
 * Checks `thinking` and `output_config`, and puts `reasoning` into the body: the same in the words of Responses, with an effort of the
 * model. Clients send an effort to every model, so one that the model lacks becomes the nearest that it has. Answers the least tokens of
 * output that the thinking needs.
 */
export function checkThinking(body: JsonObject, spec: ChatSpec): number {
  const thinking = optionalObject(body, "thinking");
  const config = optionalObject(body, "output_config");
  if (config) checkFormat(config);
  const asked = config && optionalString(config, "effort", {}, "output_config.effort");
  const type =
    thinking && requiredString(thinking, "type", { min: 1, oneOf: types }, "thinking.type");
  const display = thinking && fieldOf(thinking, "display");
  const budget = type === "enabled" && thinking ? budgetOf(thinking, body) : undefined;
  delete body.reasoning;
  const byBudget = budget === undefined ? undefined : effortOf(budget);
  const wanted = type === "disabled" ? "none" : (asked ?? byBudget);
  const effort = wanted === undefined ? undefined : nearestEffort(wanted, spec);
  if (spec.reasoningEfforts.length > 0 && (thinking || effort !== undefined)) {
    body.reasoning = {
      ...(effort === undefined ? {} : { effort }),
      ...(display === "summarized" ? { summary: "auto" } : {}),
    };
  }
  return budget === undefined ? 0 : budget + besideBudget;
}

/**
 * Takes the budget of thinking out of a body whose input is counted. It has no bound of the output that the budget must be below, and
 * the input is the same with any.
 */
export function leaveBudgetOut(body: JsonObject): void {
  const thinking = optionalObject(body, "thinking");
  if (thinking?.type !== "enabled") return;
  budgetOf(thinking, {});
  body.thinking = { ...thinking, type: "adaptive" };
}

function checkFormat(config: JsonObject): void {
  const format = optionalObject(config, "format", "output_config.format");
  if (!format) return;
  const path = "output_config.format";
  requiredString(format, "type", { min: 1, oneOf: ["json_schema"] }, `${path}.type`);
  const schema = fieldOf(format, "schema");
  if (schema === undefined) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: `${path}.schema` });
  }
  objectAt(schema, `${path}.schema`);
}

function budgetOf(thinking: JsonObject, body: JsonObject): number {
  const param = "thinking.budget_tokens";
  const rule = { integer: true, min: leastBudget };
  const budget = optionalNumber(thinking, "budget_tokens", rule, param);
  if (budget === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param });
  const { max_tokens: most } = body;
  if (typeof most === "number" && budget >= most) {
    refuse(ErrorReason.INVALID_VALUE, {
      param,
      message: `The parameter '${param}' must be less than 'max_tokens'.`,
    });
  }
  return budget;
}

/** The effort that a budget means, by LiteLLM's numbers. */
function effortOf(budget: number): string {
  if (budget >= 10_000) return "high";
  return budget >= 5_000 ? "medium" : "low";
}

/** The model's effort of this name or alias. Else the next lower one that it has, or its lowest. Undefined where it has none of them. */
function nearestEffort(wanted: string, spec: ChatSpec): string | undefined {
  const name = wanted.toLowerCase();
  const own = spec.reasoningEfforts.find((one) => one.toLowerCase() === name);
  const alias = Object.entries(spec.reasoningAliases).find(([one]) => one.toLowerCase() === name);
  if (own !== undefined || alias) return own ?? alias?.[1];
  const rank = ranks.indexOf(name);
  // No thinking is a wish of its own, which no effort comes near.
  if (rank <= 0) return undefined;
  const ranked = spec.reasoningEfforts
    .map((one) => ({ one, rank: ranks.indexOf(one.toLowerCase()) }))
    .filter((other) => other.rank > 0)
    .sort((a, b) => a.rank - b.rank);
  const lower = ranked.findLast((other) => other.rank < rank);
  return (lower ?? ranked[0])?.one;
}
