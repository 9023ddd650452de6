// Describes the events of a streamed response for the OpenAPI document. `response-schemas.ts` has the response itself.

import {
  arrayOf,
  type Fields,
  integer,
  ref,
  type Schema,
  string,
  stringOrNull,
  taggedUnion,
} from "./schemas.ts";

const numbered = { sequence_number: integer("0, 1, … within the stream.") };
const inOutput = { ...numbered, output_index: integer("Of the item in `output`.") };
const ofItem = { ...inOutput, item_id: string("The item.") };
const ofPart = { ...ofItem, content_index: integer("Of the part in the item's `content`.") };
const ofSummary = { ...ofItem, summary_index: integer("Of the part in the item's `summary`.") };
const delta = { delta: string("More of it.") };
const logprobs = {
  logprobs: arrayOf({ type: "object" }, "Log probabilities, where they were asked for."),
};
const anyPart: Schema = {
  type: "object",
  required: ["type"],
  properties: { type: { type: "string" } },
  additionalProperties: true,
  description: "The part as it is by then.",
};

/** Fields of each event by its type. */
const events: Readonly<Record<string, Fields>> = {
  ...named(["created", "in_progress", "completed", "incomplete", "failed"], "response", {
    ...numbered,
    response: ref("ResponseObject"),
  }),
  ...named(["added", "done"], "response.output_item", { ...inOutput, item: ref("OutputItem") }),
  ...named(["added", "done"], "response.content_part", { ...ofPart, part: anyPart }),
  "response.output_text.delta": { ...ofPart, ...delta, ...logprobs },
  "response.output_text.done": { ...ofPart, text: string("The whole text."), ...logprobs },
  "response.output_text.annotation.added": {
    ...ofPart,
    annotation_index: integer("Of the annotation in the part."),
    annotation: { type: "object", description: "The citation." },
  },
  "response.refusal.delta": { ...ofPart, ...delta },
  "response.refusal.done": { ...ofPart, refusal: string("The whole refusal.") },
  "response.function_call_arguments.delta": { ...ofItem, ...delta },
  "response.function_call_arguments.done": { ...ofItem, arguments: string("All of them.") },
  "response.custom_tool_call_input.delta": { ...ofItem, ...delta },
  "response.custom_tool_call_input.done": { ...ofItem, input: string("All of it.") },
  ...named(["added", "done"], "response.reasoning_summary_part", { ...ofSummary, part: anyPart }),
  "response.reasoning_summary_text.delta": { ...ofSummary, ...delta },
  "response.reasoning_summary_text.done": { ...ofSummary, text: string("The whole text.") },
  "response.reasoning_text.delta": { ...ofPart, ...delta },
  "response.reasoning_text.done": { ...ofPart, text: string("The whole text.") },
  error: {
    ...numbered,
    code: stringOrNull("Machine code of an error."),
    message: string("For people."),
    "param?": stringOrNull("Path of the offending field."),
  },
};

function named(steps: readonly string[], prefix: string, fields: Fields): Record<string, Fields> {
  return Object.fromEntries(steps.map((step) => [`${prefix}.${step}`, fields]));
}

/** `response.output_text.delta` becomes `ResponseOutputTextDelta`. */
function nameOf(type: string): string {
  const words = type === "error" ? ["response", "error"] : type.split(/[._]/);
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("");
}

/** The union of the events of `POST /responses`, and each of them. */
export const responseEvents: readonly Schema[] = taggedUnion(
  "ResponseEvent",
  "The `data` of one event. `data: [DONE]` ends the stream. Events of other types belong to tools of other families: leave them out.",
  Object.fromEntries(
    Object.entries(events).map(([type, fields]) => [
      type,
      { name: `${nameOf(type)}Event`, fields },
    ]),
  ),
);
