// Has Anthropic count the tokens of a message's input, for callers that ask for the number alone.

import { after } from "#kit/base/awaitable.ts";
import { jsonInTurns } from "#kit/base/in-turns.ts";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { callUpstream, objectIn } from "../../call.ts";
import { capabilitiesOf } from "../../protocols.ts";
import type { UpstreamsContext } from "../context.ts";
import type { CountRequest } from "../port.ts";
import { nativeBody } from "./native-request.ts";
import { headersOf } from "./plan.ts";

/** Milliseconds that a count may take: some ten times what Anthropic needs. Clients ask for many at once, and wait. */
const countTimeoutMs = 5_000;
/** Bytes of its answer, which holds one number. */
const maxCountBytes = 16 * 1024;
/** Fields of a request of which tokens are counted: `MessageCountTokensParams` of the SDK, 1.14. */
const counted: readonly string[] = [
  ...["messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"],
];

/**
 * The tokens of a message's input, as an upstream that speaks Messages counts them. It costs nothing there. Undefined where it does not
 * answer with a number. Rejects with the signal's reason.
 */
export async function countThere(
  upstream: Upstream,
  request: CountRequest,
  context: Pick<UpstreamsContext, "secrets" | "http">,
): Promise<number | undefined> {
  const { signal } = request;
  const body = countedBody(upstream, request);
  const headers = {
    ...{ "content-type": "application/json", accept: "application/json" },
    ...headersOf(body, upstream.betas, request.betas),
  };
  try {
    const reply = await after(jsonInTurns(body), (written) =>
      callUpstream(context, {
        ...{ upstream, key: capabilitiesOf(upstream.protocol)?.key, method: "POST" as const },
        url: `${upstream.baseUrl}/messages/count_tokens`,
        ...{ headers, body: written, timeoutMs: countTimeoutMs, signal },
      }),
    );
    if (reply.status !== 200) {
      reply.body.release();
      return undefined;
    }
    const tokens = objectIn(await reply.body.whole(maxCountBytes))?.input_tokens;
    return Number.isSafeInteger(tokens) && Number(tokens) >= 0 ? Number(tokens) : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UpstreamError) return undefined;
    throw error;
  }
}

function countedBody(
  { betas }: Upstream,
  { body, passParameters, upstreamModel: model, dropsBlocks }: CountRequest,
): JsonObject {
  const made = nativeBody(body, { betas, passParameters, dropsBlocks });
  const kept = Object.entries(made).filter(([name]) => counted.includes(name));
  const { thinking, ...rest } = Object.fromEntries(kept);
  return { model, ...rest, ...(isJsonObject(thinking) && { thinking: withBudget(thinking) }) };
}

/** Without a bound of the output, a budget was taken for adaptive thinking. It goes up as the caller sent it. */
function withBudget(thinking: JsonObject): JsonObject {
  return thinking.budget_tokens === undefined ? thinking : { ...thinking, type: "enabled" };
}
