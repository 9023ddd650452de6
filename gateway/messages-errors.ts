// Recognizes requests of Anthropic's API, and writes errors in its form. `errors.ts` writes all others.

import type { FastifyRequest } from "fastify";
import { messagesErrorOf, tooLongMessage } from "#common/words/messages-errors.ts";
import { ErrorReason, type RefusalError } from "#kit/base/errors.ts";
import { publicRefusal, toErrorBody, toHttpError } from "./errors.ts";

const messagesPath = /^\/v1\/messages(?:[/?]|$)/;
const modelsPath = /^\/v1\/models(?:[/?]|$)/;

/** Is it a request of Anthropic's API? Its callers send another header for the key, and read errors in another form. */
export function isOfMessages({ url, headers }: Pick<FastifyRequest, "url" | "headers">): boolean {
  if (messagesPath.test(url)) return true;
  return headers["anthropic-version"] !== undefined && modelsPath.test(url);
}

/** May its key come as `x-api-key`? */
export function takesApiKey({ url }: Pick<FastifyRequest, "url">): boolean {
  return messagesPath.test(url) || modelsPath.test(url);
}

/** An error in the form of Messages. `error` keeps the code, the path and the numbers that every error has. */
export function toMessagesBody(error: RefusalError, requestId: string) {
  const refusal = publicRefusal(error);
  const { type: _, message, ...rest } = toErrorBody(refusal);
  const { type } = messagesErrorOf(refusal.reason, refusal.metadata);
  return {
    type: "error",
    error: { type, message: messageOf(refusal, message), ...rest },
    request_id: requestId,
  };
}

function messageOf({ reason, metadata }: RefusalError, message: string): string {
  if (reason !== ErrorReason.CONTEXT_LENGTH_EXCEEDED) return message;
  return tooLongMessage({ tokens: metadata.input_tokens, most: metadata.input_room });
}

/** The same over HTTP. */
export function toMessagesError(refusal: RefusalError, requestId: string) {
  const { headers } = toHttpError(refusal);
  const { reason, metadata } = publicRefusal(refusal);
  const { status } = messagesErrorOf(reason, metadata);
  const isOverloaded = status === 529 && headers["retry-after"] === undefined;
  return {
    status,
    headers: { ...headers, ...(isOverloaded ? { "retry-after": "1" } : {}) },
    body: toMessagesBody(refusal, requestId),
  };
}
