// The methods of TextService, for gateways in another process and for operators. Requests go on to `port.ts`.

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { TextPort } from "#common/agreements/text-port.ts";
import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { jsonBody } from "#common/words/typed-body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { JsonReader } from "#kit/json-reader/index.ts";
import type { PeerCall } from "#kit/rpc/peer-call.ts";
import { principalOf, requestIdHeader } from "#kit/rpc/principal.ts";
import { later } from "#kit/stream/push-stream.ts";
import { HoldVerdictSchema } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import {
  type GenerateRequest,
  Operation,
  ResponsesBodySchema,
  type StreamGenerateRequest,
  type TextService,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import { messagesOf } from "./answers/answer-messages.ts";
import type { Answering } from "./answers/answering.ts";
import { eraseBatch, maxReviews } from "./base/limits.ts";
import type { Reaper } from "./paid/reaper.ts";
import { callOf } from "./port.ts";
import { leaveBudgetOut } from "./request/messages-thinking.ts";
import type { UsageStore } from "./store/store.ts";
import { createUpstreamRoutes, type UpstreamRoutesContext } from "./upstream-routes.ts";

/** Dependencies of the methods. */
export interface TextRoutesContext extends UpstreamRoutesContext {
  /** Answers requests. */
  port: TextPort;
  answering: Pick<Answering, "count">;
  reaper: Reaper;
  store: UsageStore;
  ids: Ids;
  /** Reads request bodies. */
  reader: JsonReader;
}

/** The methods of TextService. */
export function createTextRoutes(context: TextRoutesContext): ServiceImpl<typeof TextService> {
  const { port, answering, reader, reaper, store, ids } = context;
  return {
    async generate(request, call) {
      const answer = await port.json(withBody(request), peerCall(call, ids));
      const { body, cost, replayed, ignored, maxOutputTokens: most } = answer;
      return {
        ...{ body, replayed, ignoredParameters: [...ignored] },
        ...(cost === undefined ? {} : { costUsdMicros: cost }),
        ...(most === undefined ? {} : { maxOutputTokens: BigInt(most) }),
      };
    },
    streamGenerate: (request, call) =>
      later(async () => messagesOf(await port.answer(withBody(request), peerCall(call, ids)))),
    async countInput({ body, admission, operation: named, betas }, call) {
      const operation = named === Operation.UNSPECIFIED ? Operation.RESPONSES : named;
      const parsed = await callOf(
        { operation, body, admission, betas },
        peerCall(call, ids),
        reader,
      );
      // Only the count of a message may lack it.
      if (operation === Operation.MESSAGES) {
        parsed.parsed.body.max_tokens = 1;
        leaveBudgetOut(parsed.parsed.body);
      }
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
    ...createUpstreamRoutes(context),
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

/** The request with its body as JSON, also where that came with types. Refuses types of another operation than Responses. */
function withBody<R extends GenerateRequest | StreamGenerateRequest>(request: R): R {
  const { operation, body, responses: typed } = request;
  if (!typed) return request;
  const field = "responses";
  if (operation !== Operation.RESPONSES) {
    refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
  }
  const desc = ResponsesBodySchema;
  return { ...request, body: jsonBody({ body, typed, desc, field, useProtoFieldName: true }) };
}

/** The facts about a call that its headers bring. The server keeps the deadline, by the signal. */
function peerCall(context: HandlerContext, ids: Ids): PeerCall {
  return {
    principal: principalOf(context),
    requestId: context.requestHeader.get(requestIdHeader) ?? ids.make("req"),
    signal: context.signal,
  };
}
