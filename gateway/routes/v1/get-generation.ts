// The operation that finds one ended request by an id, and says what it cost. Billing finds it. `list-requests.ts` lists many.

import type { FastifyInstance } from "fastify";
import { pricedDocument } from "#common/documents/priced-document.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Line } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Edge } from "../../context.ts";
import { errors, queryReasons } from "../../error-answers.ts";
import { deadlinesMs } from "../../limits.ts";
import { queryString } from "../../query.ts";
import { callerOf, callOptions } from "../../request.ts";
import {
  boolean,
  integer,
  json,
  nullable,
  number,
  object,
  type RouteSchema,
  string,
} from "../../schemas.ts";
import {
  pricedProperties,
  requestErrorSchema,
  seenKey,
  toRequestDocument,
} from "../../usage-query.ts";

const getGenerationSchema: RouteSchema = {
  operationId: "getGeneration",
  summary: "Get what a request cost",
  description:
    "OpenRouter's record of one request, and ours beside it. `id` is that of the answer (`resp_…`, `chatcmpl-…`, `job_…`, " +
    "`speech_…`, `text_…` of embeddings and transcriptions) or its `x-request-id`. Of the key's own requests, or of the " +
    "account's for a key with the scope `usage:read-all`; any other is 404 `request_not_found`. What is null is not told: " +
    "which upstream answered is the operator's to know.",
  tags: ["Usage"],
  querystring: object({ id: string("Of the answer, or its `x-request-id`.") }, ["id"]),
  response: {
    200: json(
      "The record.",
      object(
        {
          data: object({
            id: string("Of the answer."),
            total_cost: number("Dollars."),
            usage: number("The same."),
            created_at: string("When it began.", { format: "date-time" }),
            model: nullable(string("Model id.")),
            streamed: boolean("As events."),
            cancelled: boolean("Its caller left it, or cancelled it."),
            provider_name: { type: "null", description: "Not told." },
            upstream_id: { type: "null", description: "Not told." },
            origin: string("Empty."),
            app_id: { type: "null", description: "Not told." },
            is_byok: boolean("False."),
            cache_discount: { type: "null", description: "Not told." },
            latency: nullable(integer("Milliseconds until the first output.")),
            generation_time: nullable(integer("Milliseconds until the end.")),
            moderation_latency: { type: "null", description: "Not told." },
            finish_reason: nullable(string("Why its answer ended.")),
            native_finish_reason: nullable(string("The same.")),
            error: requestErrorSchema,
            tokens_prompt: integer("Charged."),
            tokens_completion: integer("Charged."),
            native_tokens_prompt: integer("The same."),
            native_tokens_completion: integer("The same."),
            native_tokens_reasoning: integer("Of these, tokens of reasoning."),
            native_tokens_cached: integer("Of the prompt, cached ones."),
            num_media_prompt: { type: "null", description: "Not told." },
            num_media_completion: nullable(integer("Images of a job.")),
            num_search_results: nullable(integer("Searches by the model.")),
            costUsdMicros: integer("The cost, exactly."),
            creditsCharged: integer("Of a job."),
            requestId: nullable(string("`x-request-id` of its answer.")),
            keyId: string("The key that paid."),
            status: nullable(string("As in `GET /requests`.")),
            kind: string("As in `GET /requests`."),
            ...pricedProperties,
          }),
        },
        ["data"],
      ),
    ),
    ...errors(
      ...queryReasons,
      ErrorReason.MISSING_REQUIRED_PARAMETER,
      ErrorReason.REQUEST_NOT_FOUND,
      ErrorReason.USAGE_BEING_COUNTED,
    ),
  },
};

/** `GET /generation`: one request by an id that its caller has. Any valid key may call it. */
export function getGeneration(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/generation",
    config: { reads: true },
    schema: getGenerationSchema,
    handler: async (request, reply) => {
      const id = queryString(request, "id");
      if (id === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "id" });
      // No id that the API gives is longer.
      if (id.length > 200) refuse(ErrorReason.REQUEST_NOT_FOUND);
      const { accountId } = callerOf(request).principal;
      const { line } = await edge.peers.billing.findLine(
        { accountId, keyId: seenKey(request) ?? "", id },
        callOptions(request, reply, deadlinesMs.quick),
      );
      if (!line) throw new Error("billing found a request without a line");
      return reply.send({ data: toGeneration(line) });
    },
  });
}

function toGeneration(line: Line) {
  const told = toRequestDocument(line);
  const { tokens, costUsdMicros, finishReason } = told;
  const cost = costUsdMicros / 1_000_000;
  return {
    id: told.id,
    total_cost: cost,
    usage: cost,
    created_at: told.createdAt,
    model: told.model,
    streamed: told.streamed,
    cancelled: told.status === "left" || told.status === "cancelled",
    provider_name: null,
    upstream_id: null,
    origin: "",
    app_id: null,
    is_byok: false,
    cache_discount: null,
    latency: told.firstOutputMs,
    moderation_latency: null,
    generation_time: told.durationMs,
    finish_reason: finishReason,
    error: told.error,
    native_finish_reason: finishReason,
    tokens_prompt: tokens.input,
    tokens_completion: tokens.output,
    native_tokens_prompt: tokens.input,
    native_tokens_completion: tokens.output,
    native_tokens_reasoning: tokens.reasoning,
    native_tokens_cached: tokens.cachedInput,
    num_media_prompt: null,
    num_media_completion: told.images || null,
    num_search_results: told.toolCalls.web_search ?? null,
    costUsdMicros,
    creditsCharged: told.creditsCharged,
    requestId: told.requestId,
    keyId: told.keyId,
    status: told.status,
    kind: told.kind,
    ...pricedDocument(line.record?.priced),
  };
}
