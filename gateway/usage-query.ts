// Says which keys' usage a caller may see, and makes the public document of an ended request. All operations about usage and
// entries share it.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { FastifyRequest } from "fastify";
import { isoTime } from "#common/documents/answer-values.ts";
import { pricedDocument } from "#common/documents/priced-document.ts";
import { ErrorReason, generalMessage, isRefusal, reasonOfName, refuse } from "#kit/base/errors.ts";
import { accountOrKeyIdPattern } from "#kit/base/ids.ts";
import {
  type Line,
  type RequestFailure,
  Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { callerOf } from "./request.ts";
import { boolean, integer, nullable, number, object, string } from "./schemas.ts";

/** The kinds of usage that a query may ask for. */
export const usageKinds = ["text", "speech", "image", "video", "music", "job"] as const;

/** The ways in which a request or a job can have ended, in the ledger's words. */
export const usageStatuses = [
  "completed",
  "incomplete",
  "failed",
  "cancelled",
  "left",
  "ended",
  "unsent",
  "lost",
] as const;

/** The key whose part of the ledger a caller sees. Undefined: all of its account. */
export function seenKey(request: FastifyRequest): string | undefined {
  const { principal, scopes } = callerOf(request);
  return scopes.has(Scope.USAGE_READ_ALL) ? undefined : principal.keyId;
}

/** The keys of a filter, where the caller may see them. Undefined: it named none. */
export function filterKeys(
  request: FastifyRequest,
  param: string,
  keyIds: readonly string[],
): readonly string[] | undefined {
  const own = seenKey(request);
  if (own !== undefined && keyIds.some((keyId) => keyId !== own)) {
    refuse(ErrorReason.PERMISSION_DENIED, {
      param,
      message:
        "This API key may see its own use alone. A key with the scope 'usage:read-all' may see that of all keys.",
    });
  }
  // Billing takes no other form. A refusal of billing would be the gateway's mistake, and a 500.
  if (!keyIds.every((keyId) => accountOrKeyIdPattern.test(keyId))) {
    refuse(ErrorReason.INVALID_VALUE, { param });
  }
  if (keyIds.length > 0) return keyIds;
  return own === undefined ? undefined : [own];
}

/** Fields of internal calls, with their names in the query. */
const params: Readonly<Record<string, string>> = { key_id: "key", page_token: "after" };

/** The fault of an internal message here is the caller's cursor, or a filter that no line can match. */
export function refuseCursor(error: unknown): never {
  if (!isRefusal(error, ErrorReason.INVALID_ARGUMENT)) throw error;
  const { field = "after" } = error.metadata;
  refuse(ErrorReason.INVALID_VALUE, { param: params[field] ?? field });
}

/** A request for its caller's key or account. */
export function toRequestDocument(line: Line) {
  const { record } = line;
  const started = record?.startTime;
  const ended = record?.endTime;
  const first = record?.firstOutputTime;
  const chargedAt = isoTime(line.time);
  const durationMs = started && ended ? timestampMs(ended) - timestampMs(started) : null;
  const firstOutputMs = started && first ? timestampMs(first) - timestampMs(started) : null;
  const isCredits = line.unit === Unit.CREDITS;
  return {
    id: line.id,
    object: "request",
    requestId: record?.requestId || null,
    createdAt: isoTime(started) || chargedAt,
    endedAt: isoTime(ended) || chargedAt,
    kind: line.kind,
    operation: record?.operation || null,
    model: line.model || null,
    keyId: line.keyId,
    status: record?.status || null,
    streamed: record?.streamed ?? false,
    tokens: {
      input: Number(record?.inputTokens ?? 0n),
      cachedInput: Number(record?.cachedInputTokens ?? 0n),
      output: Number(record?.outputTokens ?? 0n),
      reasoning: Number(record?.reasoningTokens ?? 0n),
    },
    ...pricedDocument(record?.priced),
    images: Number(record?.images ?? 0n),
    seconds: Number(record?.mediaMs ?? 0n) / 1_000,
    characters: Number(record?.characters ?? 0n),
    firstOutputMs,
    durationMs,
    costUsdMicros: isCredits ? 0 : Number(-line.amount),
    creditsCharged: isCredits ? Number(-line.amount) : 0,
    estimated: record?.estimated ?? false,
    finishReason: record?.finishReason || null,
    error: record?.failure ? failureDocument(record.failure, line.model) : null,
  };
}

/** Parts of a request that may have prices of their own. */
export const pricedProperties = {
  inputCacheWriteTokens: integer("Of the input, tokens written to a cache."),
  inputCacheWriteLongTokens: integer("Of these, tokens of long entries."),
  inputAudioTokens: integer("Of the input, tokens of audio."),
  inputImageTokens: integer("Of the input, tokens of images."),
  outputAudioTokens: integer("Of the output, tokens of audio."),
  outputImageTokens: integer("Of the output, tokens of images."),
  toolCalls: object({}, [], {
    additionalProperties: integer("Calls."),
    description: "Calls of hosted tools, by their family.",
  }),
  priceAboveInputTokens: integer(
    "The bound of the price's row for a long input; 0: the row without a bound.",
  ),
  servedTier: nullable(string("The service tier that the answer named.")),
};

/** The error that a failed request's caller got, in the words of its code. A code of a later release is a failure of the service. */
function failureDocument({ code }: RequestFailure, model: string) {
  const reason = reasonOfName(code.toUpperCase()) ?? ErrorReason.INTERNAL_ERROR;
  return { code, message: generalMessage(reason, { model }) };
}

/** The error of a failed request, in two descriptions. */
export const requestErrorSchema = nullable(
  object(
    {
      code: string("As in the answer that its caller got."),
      message: string("What the code means."),
    },
    ["code", "message"],
    { description: "Why it failed. Null: it did not, or an earlier release did not keep that." },
  ),
);

/** A request that ended. It is a component of the description. */
export const requestRecordSchema = {
  $id: "RequestRecord",
  ...object(
    {
      id: string(
        "What its caller knows the answer by: `resp_…`, `chatcmpl-…`, `job_…`, `speech_…`.",
      ),
      object: string("", { enum: ["request"] }),
      requestId: nullable(string("`x-request-id` of its answer.")),
      createdAt: string("When it began.", { format: "date-time" }),
      endedAt: string("When it ended.", { format: "date-time" }),
      kind: string("`job`: one of an earlier release.", { enum: [...usageKinds] }),
      operation: nullable(string("`responses`, `compact`, `chat`, `speech`, `image`, …")),
      model: nullable(string("Model id.")),
      keyId: string("The key that paid."),
      status: nullable(
        string(
          "`completed`, `incomplete`, `failed`, `cancelled`, `left` (by its caller), `ended` (by us), `unsent`, or `lost` with its " +
            "process.",
        ),
      ),
      streamed: boolean("Its answer was asked for as events."),
      tokens: object({
        input: integer("Charged, the cached ones included."),
        cachedInput: integer("Of these, cached ones."),
        output: integer("Charged, those of reasoning included."),
        reasoning: integer("Of these, tokens of reasoning."),
      }),
      ...pricedProperties,
      images: integer("Images made."),
      seconds: number("Of video, music and speech that was made."),
      characters: integer("Of a speech, charged."),
      firstOutputMs: nullable(integer("Until its first output.")),
      durationMs: nullable(integer("Until its end.")),
      costUsdMicros: integer("What it was charged of the dollars."),
      creditsCharged: integer("What it was charged of the credits."),
      estimated: boolean(
        "Its tokens were counted here, for the upstream reported none that can be right.",
      ),
      finishReason: nullable(string("Why its answer ended: `stop`, `length`, `tool_calls`, …")),
      error: requestErrorSchema,
    },
    ["id", "object", "createdAt", "kind", "keyId", "costUsdMicros", "creditsCharged"],
    {
      description:
        "What the ledger keeps of a request: nothing that its caller wrote or was answered.",
    },
  ),
};
