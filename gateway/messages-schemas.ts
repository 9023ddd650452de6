import { messagesErrorOf } from "#common/words/messages-errors.ts";
import { allReasons, errorRow } from "#kit/base/errors.ts";
import { errorFields, json, object, type Schema, string } from "./schemas.ts";

const { message, code, param } = errorFields;

/** An error of Anthropic's API. */
const messagesError = object(
  {
    type: string("", { enum: ["error"] }),
    error: object({ type: string("The family of the error."), message, code, param }, [
      "type",
      "message",
    ]),
    request_id: string("The id of the request, as the header `request-id`."),
  },
  ["type", "error", "request_id"],
);

/** The error answers of a route of Anthropic's API: its own statuses, and those that every operation has. */
export function messagesErrors(...statuses: number[]): Record<string, Schema> {
  const all = [...new Set([...statuses, 401, 403, 405, 429, 500, 503])].sort((a, b) => a - b);
  return Object.fromEntries(all.map((status) => [String(status), answerOf(status)]));
}

function answerOf(status: number): Schema {
  const reasons = allReasons().filter((reason) => {
    const isPublic = errorRow(reason).audience === "public";
    return isPublic && messagesErrorOf(reason).status === status;
  });
  const codes = reasons.map((reason) => `\`${errorRow(reason).code}\``).join(", ");
  const told =
    codes === "" ? "The model has no room at present." : `\`error.code\` is one of: ${codes}.`;
  return json(told, messagesError);
}
