// The operation that adds up usage and charges by hour or day, key, model and kind, as JSON or CSV. Billing adds up. This reads
// the query and writes the form.

import { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { csvLine } from "#kit/base/csv.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { UsageBucket, UsageResult } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Edge } from "../../context.ts";
import { errors, queryReasons } from "../../error-answers.ts";
import { deadlinesMs, usageLimits } from "../../limits.ts";
import { csvHeaders, sendMade } from "../../made-files.ts";
import { takeTurn } from "../../plugins/reads.ts";
import { queryLimit, queryList, queryOneOf, querySeconds, queryString } from "../../query.ts";
import { callerOf, callOptions } from "../../request.ts";
import {
  arrayOf,
  boolean,
  integer,
  json,
  number,
  object,
  type RouteSchema,
  string,
  stringOrNull,
} from "../../schemas.ts";
import { filterKeys, usageKinds } from "../../usage-query.ts";

const groups = ["model", "api_key_id", "kind"];
const exampleStart = 1_763_683_200;

const getUsageSchema: RouteSchema = {
  operationId: "getUsage",
  summary: "Get usage",
  description:
    "What was used and charged, by hours or days (UTC), in the envelope of OpenAI's usage API: the key's, or the account's for a key " +
    "with the scope `usage:read-all`. It is added up from the ledger, so its sums are those of `GET /requests` and " +
    "`GET /billing/entries`. A charge counts when it was made, and a refund lowers the hour of its charge.",
  tags: ["Usage"],
  querystring: object(
    {
      start_time: integer("Seconds since 1970; the bucket that it falls in is the first."),
      end_time: integer("Seconds since 1970; buckets begin before it. Default: now."),
      bucket_width: string("", { enum: ["1h", "1d"], default: "1d" }),
      "group_by[]": arrayOf({ type: "string", enum: groups }, "One result for each."),
      "models[]": arrayOf({ type: "string" }, "Only these."),
      "api_key_ids[]": arrayOf(
        { type: "string" },
        "Only these; the own, or any with `usage:read-all`.",
      ),
      "kinds[]": arrayOf({ type: "string", enum: [...usageKinds] }, "Only these."),
      limit: integer(
        "Buckets a page, of `json`: of days 7, at most 31; of hours 24, at most 168.",
        {
          minimum: 1,
        },
      ),
      page: string("`next_page` of the page before."),
      format: string("`csv`: a row for each result of all buckets, from `page` on.", {
        enum: ["json", "csv"],
        default: "json",
      }),
    },
    ["start_time"],
  ),
  response: {
    200: json(
      "A page of buckets. CSV streams all of them; a stream that is cut has no proper end of its body.",
      object(
        {
          object: string("", { enum: ["page"] }),
          data: arrayOf(
            object({
              object: string("", { enum: ["bucket"] }),
              start_time: integer("Seconds since 1970."),
              end_time: integer("Not in it any more."),
              results: arrayOf(
                object({
                  object: string("", { enum: ["usage.result"] }),
                  model: stringOrNull(
                    "Where it is grouped by model; null also for jobs of an earlier release.",
                  ),
                  api_key_id: stringOrNull("Where it is grouped by key."),
                  kind: stringOrNull("Where it is grouped by kind."),
                  num_model_requests: integer(
                    "Requests and jobs that ended, also those that cost nothing.",
                  ),
                  input_tokens: integer("Charged, the cached ones included."),
                  input_cached_tokens: integer("Of these, cached ones."),
                  input_cache_write_tokens: integer("Of these, tokens written to a cache."),
                  input_cache_write_long_tokens: integer("Of those written, for long."),
                  input_audio_tokens: integer("Of the input, tokens of audio."),
                  input_image_tokens: integer("Of the input, tokens of images."),
                  output_tokens: integer("Charged, those of reasoning included."),
                  reasoning_tokens: integer("Of these, tokens of reasoning."),
                  output_audio_tokens: integer("Of the output, tokens of audio."),
                  output_image_tokens: integer("Of the output, tokens of images."),
                  tool_calls: integer("Calls of hosted tools, of all families."),
                  seconds: number("Of video, music and speech."),
                  images: integer("Images."),
                  characters: integer("Of speech."),
                  spentUsdMicros: integer("Charged, less what was given back."),
                  spentCredits: integer("Charged, less what was given back."),
                }),
                "None where nothing was used.",
              ),
            }),
            "Buckets in order of time.",
          ),
          has_more: boolean("Buckets follow."),
          next_page: stringOrNull("For `page`."),
        },
        ["object", "data", "has_more", "next_page"],
      ),
      {
        object: "page",
        data: [
          {
            object: "bucket",
            start_time: exampleStart,
            end_time: exampleStart + 86_400,
            results: [
              {
                object: "usage.result",
                model: "chat-1",
                api_key_id: null,
                kind: null,
                num_model_requests: 12,
                input_tokens: 3_400,
                input_cached_tokens: 0,
                input_cache_write_tokens: 900,
                input_cache_write_long_tokens: 0,
                input_audio_tokens: 0,
                input_image_tokens: 0,
                output_tokens: 2_210,
                reasoning_tokens: 0,
                output_audio_tokens: 0,
                output_image_tokens: 0,
                tool_calls: 3,
                seconds: 0,
                images: 0,
                characters: 0,
                spentUsdMicros: 10_450,
                spentCredits: 0,
              },
            ],
          },
        ],
        has_more: false,
        next_page: null,
      },
    ),
    ...errors(
      ...queryReasons,
      ErrorReason.MISSING_REQUIRED_PARAMETER,
      ErrorReason.USAGE_BEING_COUNTED,
    ),
  },
};

/** `GET /usage`: the usage and charges of the key, or of its account. Any valid key may call it. */
export function getUsage(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/usage",
    config: { reads: true },
    schema: getUsageSchema,
    handler: async (request, reply) => {
      const { accountId } = callerOf(request).principal;
      const nowMs = edge.clock.now();
      const asked = readAsked(request, nowMs);
      const isCsv = queryOneOf(request, "format", { json: false, csv: true }) ?? false;
      const { width } = asked;
      // A file has no row for an hour without charges, and millions of such hours may follow. They need not be read.
      const last = Math.floor(nowMs / 1_000) + usageLimits.aheadSeconds;
      const end = isCsv ? Math.min(asked.end, last) : asked.end;
      const options = callOptions(request, reply, deadlinesMs.quick);
      /** Buckets from `start` on, at most `most` of them, and the start of the next one. Undefined: there is none. */
      const page = async (start: number, most: number) => {
        const count = Math.max(0, Math.ceil((end - start) / width));
        if (count === 0) return { data: [], next: undefined };
        const query = { accountId, startSeconds: BigInt(start), widthSeconds: width };
        const { buckets } = await edge.peers.billing.getUsage(
          { ...query, buckets: Math.min(count, most), ...asked.filter },
          options,
        );
        // Billing ends an answer early where it has many results.
        const next = buckets.length < count ? start + buckets.length * width : undefined;
        return { data: buckets.map((bucket) => toBucketDocument(bucket, asked)), next };
      };
      if (!isCsv) {
        const { data, next } = await page(asked.start, asked.limit);
        const next_page = next === undefined ? null : `t${next}`;
        return reply.send({ object: "page", data, has_more: next_page !== null, next_page });
      }
      // Before the headers are sent, so that an error has its own status.
      const first = await page(asked.start, asked.most);
      const furtherPage = async (start: number) => {
        using _turn = await takeTurn(edge.reads, accountId, options.signal);
        return await page(start, asked.most);
      };
      async function* text(): AsyncIterable<string> {
        yield csvLine(columns);
        for (let { data, next } = first; ; ) {
          const rows = toCsvRows(data);
          if (rows !== "") yield rows;
          if (next === undefined) return;
          ({ data, next } = await furtherPage(next));
        }
      }
      csvHeaders(reply, "usage");
      return sendMade(edge, request, reply, Readable.from(text()));
    },
  });
}

const widths = {
  "1h": { width: 3_600, limits: usageLimits.hours },
  "1d": { width: 86_400, limits: usageLimits.days },
};

function readAsked(request: FastifyRequest, nowMs: number) {
  const { width, limits } = queryOneOf(request, "bucket_width", widths) ?? widths["1d"];
  const first = querySeconds(request, "start_time");
  if (first === undefined) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "start_time" });
  }
  const end = querySeconds(request, "end_time") ?? Math.floor(nowMs / 1_000) + 1;
  const page = queryString(request, "page");
  if (page !== undefined && !/^t\d{1,11}$/.test(page)) {
    refuse(ErrorReason.INVALID_VALUE, { param: "page" });
  }
  const from = page === undefined ? first : Number(page.slice(1));
  const start = Math.floor(from / width) * width;
  const groupBy = queryList(request, "group_by", groups.length * 2);
  if (!groupBy.every((name) => groups.includes(name))) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "group_by",
      message: `The parameter 'group_by' must be one or more of: ${groups.join(", ")}.`,
    });
  }
  const kinds = queryList(request, "kinds", usageKinds.length * 2);
  if (!kinds.every((kind) => usageKinds.some((known) => known === kind))) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "kinds",
      message: `The parameter 'kinds' must be one or more of: ${usageKinds.join(", ")}.`,
    });
  }
  const keyIds = queryList(request, "api_key_ids", maxKeysPerAccount);
  return {
    start,
    width,
    end,
    limit: queryLimit(request, limits),
    most: limits.most,
    filter: {
      keyIds: [...(filterKeys(request, "api_key_ids", keyIds) ?? [])],
      models: queryList(request, "models", usageLimits.models),
      kinds,
      byKey: groupBy.includes("api_key_id"),
      byModel: groupBy.includes("model"),
      byKind: groupBy.includes("kind"),
    },
  };
}

type Asked = ReturnType<typeof readAsked>;

function toBucketDocument({ startSeconds, results }: UsageBucket, { width, filter }: Asked) {
  const start = Number(startSeconds);
  return {
    object: "bucket",
    start_time: start,
    end_time: start + width,
    results: results.map((result) => toResultDocument(result, filter)),
  };
}

function toResultDocument(result: UsageResult, by: Asked["filter"]) {
  return {
    object: "usage.result",
    model: by.byModel ? result.model || null : null,
    api_key_id: by.byKey ? result.keyId : null,
    kind: by.byKind ? result.kind : null,
    num_model_requests: Number(result.requests),
    input_tokens: Number(result.inputTokens),
    input_cached_tokens: Number(result.cachedInputTokens),
    input_cache_write_tokens: Number(result.inputCacheWriteTokens),
    input_cache_write_long_tokens: Number(result.inputCacheWriteLongTokens),
    input_audio_tokens: Number(result.inputAudioTokens),
    input_image_tokens: Number(result.inputImageTokens),
    output_tokens: Number(result.outputTokens),
    reasoning_tokens: Number(result.reasoningTokens),
    output_audio_tokens: Number(result.outputAudioTokens),
    output_image_tokens: Number(result.outputImageTokens),
    tool_calls: Number(result.toolCalls),
    seconds: Number(result.mediaMs) / 1_000,
    images: Number(result.images),
    characters: Number(result.characters),
    spentUsdMicros: Number(result.spentUsdMicros),
    spentCredits: Number(result.spentCredits),
  };
}

function toCsvRows(data: readonly ReturnType<typeof toBucketDocument>[]): string {
  const rows = data.flatMap(({ start_time, end_time, results }) =>
    results.map(({ object: _kind, ...cells }) => ({ start_time, end_time, ...cells })),
  );
  return rows.map((row) => csvLine(columns.map((name) => row[name]))).join("");
}

const columns = [
  "start_time",
  "end_time",
  "model",
  "api_key_id",
  "kind",
  "num_model_requests",
  "input_tokens",
  "input_cached_tokens",
  "output_tokens",
  "reasoning_tokens",
  "seconds",
  "images",
  "characters",
  "spentUsdMicros",
  "spentCredits",
  // Later ones stand behind, so that programs that count columns find theirs.
  "input_cache_write_tokens",
  "input_cache_write_long_tokens",
  "input_audio_tokens",
  "input_image_tokens",
  "output_audio_tokens",
  "output_image_tokens",
  "tool_calls",
] as const;
