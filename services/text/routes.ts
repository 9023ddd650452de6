import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { type Awaitable, after } from "#kit/base/awaitable.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import { principalOf, requestIdHeader } from "#kit/rpc/principal.ts";
import { later } from "#kit/stream/push-stream.ts";
import { HoldVerdictSchema } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import {
  type GenerateRequest,
  Operation,
  type StreamGenerateRequest,
  type TextService,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { UpstreamHealth } from "../upstreams/health/index.ts";
import type { TextOperation } from "../upstreams/text/port.ts";
import { messagesOf } from "./answers/answer-messages.ts";
import type { Answering, Call } from "./answers/answering.ts";
import type { Seat } from "./answers/joins.ts";
import { eraseBatch, maxReviews } from "./base/limits.ts";
import type { Reaper } from "./paid/reaper.ts";
import { parseRequest } from "./request/parse.ts";
import type { UsageStore } from "./store/store.ts";

/** Dependencies of the methods. */
export interface TextRoutesContext {
  answering: Answering;
  reaper: Reaper;
  store: UsageStore;
  ids: Ids;
  health: Pick<UpstreamHealth, "read">;
  /** Reads request bodies. */
  reader: JsonReader;
}

/** The methods of TextService. */
export function createTextRoutes(context: TextRoutesContext): ServiceImpl<typeof TextService> {
  const { answering, reaper, store } = context;
  return {
    async generate(request, call) {
      const seat = answering.ask(jsonOnly(await callOf(request, call, context)));
      const leave = leaveWith(seat, call.signal);
      try {
        const answer = await seat.answer;
        if (answer.kind !== "json") throw new TypeError("a stream for a caller who asked for none");
        const { body, cost, replayed, ignored } = answer;
        return {
          body,
          replayed,
          ignoredParameters: [...ignored],
          ...(cost === undefined ? {} : { costUsdMicros: cost }),
        };
      } finally {
        leave();
      }
    },
    streamGenerate(request, call) {
      return later(() =>
        after(callOf(request, call, context), (asked) => {
          const seat = answering.ask(asked);
          const leave = leaveWith(seat, call.signal);
          return seat.answer.then(
            (answer) => messagesOf(answer, request, leave),
            (error) => {
              leave();
              throw error;
            },
          );
        }),
      );
    },
    async countInput({ body, admission }, call) {
      const asked = { operation: Operation.RESPONSES, body, admission, idempotencyKey: undefined };
      const parsed = await callOf(asked, call, context);
      const { inputTokens, cost, hold } = await answering.count(parsed, call.signal);
      return {
        inputTokens: BigInt(inputTokens),
        costUsdMicros: cost,
        holdUsdMicros: hold,
      };
    },
    async resolveHold({ holdId, accountId }) {
      const verdict = await reaper.verdictOn(holdId, accountId);
      return { verdict: create(HoldVerdictSchema, { verdict }) };
    },
    async eraseAccount({ keyIds }) {
      if (keyIds.length > maxKeysPerAccount) {
        refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "key_ids" } });
      }
      return { isOver: (await store.eraseKept(keyIds, eraseBatch)) === 0 };
    },
    async listUpstreamHealth() {
      const { upstreams, processes } = await context.health.read();
      return {
        processes,
        upstreams: upstreams.map(({ requests, errors, emptyAtMs, ...one }) => ({
          ...one,
          requests: BigInt(requests),
          errors: BigInt(errors),
          ...(emptyAtMs === undefined ? {} : { accountEmptyTime: timestampFromMs(emptyAtMs) }),
        })),
      };
    },
    async listReviews({ accountId }) {
      const reviews = await store.reviews(accountId || undefined, maxReviews);
      return {
        reviews: reviews.map(({ requestId, modelId, reported, charged, at, ...review }) => ({
          requestId,
          accountId: review.accountId,
          holdId: requestId,
          model: modelId,
          reportedUsage: reported,
          reviewTime: timestampFromMs(at),
          ...(charged === undefined ? {} : { chargedUsdMicros: charged }),
        })),
      };
    },
  };
}

const operations: Readonly<Record<Operation, TextOperation | undefined>> = {
  [Operation.UNSPECIFIED]: undefined,
  [Operation.RESPONSES]: "responses",
  [Operation.COMPACT]: "compact",
  [Operation.CHAT_COMPLETIONS]: "chat",
  [Operation.EMBEDDINGS]: "embeddings",
  [Operation.TRANSCRIPTIONS]: "transcriptions",
};

function callOf(
  request: Pick<
    GenerateRequest | StreamGenerateRequest,
    "operation" | "body" | "admission" | "idempotencyKey"
  >,
  context: HandlerContext,
  { ids, reader }: Pick<TextRoutesContext, "ids" | "reader">,
): Awaitable<Call> {
  const operation =
    operations[request.operation] ??
    refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "operation" } });
  const principal = principalOf(context);
  const { accountId } = principal;
  const isKeyed = request.idempotencyKey !== undefined;
  const { signal } = context;
  const parsing = parseRequest(operation, request.body, { reader, accountId, isKeyed, signal });
  return after(parsing, (parsed) => ({
    parsed,
    principal,
    admission: request.admission,
    idempotencyKey: request.idempotencyKey,
    requestId: context.requestHeader.get(requestIdHeader) ?? ids.make("req"),
  }));
}

function jsonOnly(call: Call): Call {
  if (call.parsed.form !== "json") {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "stream",
      message: "This call gives no stream.",
    });
  }
  return call;
}

/** Leaves the seat when the caller goes. The returned function must be called when the caller was served. */
function leaveWith(seat: Seat, signal: AbortSignal): () => void {
  signal.addEventListener("abort", seat.leave, { once: true });
  if (signal.aborted) seat.leave();
  return () => {
    signal.removeEventListener("abort", seat.leave);
    seat.leave();
  };
}
