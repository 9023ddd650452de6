// Says an error of genmesh in the words of Anthropic's Messages API. The edge and the drivers of text need the same words, for
// answers and for events in a stream.

import { ErrorReason, errorRow, type Reason } from "#kit/base/errors.ts";

/** Anthropic's families of errors, by the HTTP status. */
const typesByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  502: "api_error",
  503: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** Reasons with another status in Messages than elsewhere, where their clients decide by it. */
const statuses: { readonly [R in Reason]?: number } = {
  [ErrorReason.MODEL_NOT_FOUND]: 404,
};

/** Metadata of a refusal that says that the model's upstreams have no room at present. */
export const overloadedMark = "overloaded";

/** A reason in the words of Messages: its HTTP status, and the `type` of its error. */
export function messagesErrorOf(
  reason: Reason,
  metadata: Readonly<Record<string, string>> = {},
): { status: number; type: string } {
  const isOverloaded = metadata[overloadedMark] !== undefined;
  const status = isOverloaded ? 529 : (statuses[reason] ?? errorRow(reason).status);
  return { status, type: typesByStatus[status] ?? "invalid_request_error" };
}

/** Numbers in the wording of Anthropic's error for an input that is too long. */
export interface TooLong {
  /** Tokens of the input. */
  tokens: string | undefined;
  /** The most tokens that fit. */
  most: string | undefined;
}

/** Anthropic's wording. Clients read it, and compact their conversation. */
export function tooLongMessage({ tokens, most }: TooLong): string {
  const isKnown = tokens !== undefined && most !== undefined;
  return isKnown ? `prompt is too long: ${tokens} tokens > ${most} maximum` : "prompt is too long";
}
