// Tells which upstreams of Messages can take a request of another protocol. It tries the translation, and refuses at the field
// that has no form there.

import { type Awaitable, after } from "#kit/base/awaitable.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { inTurns } from "#kit/base/in-turns.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { ChatSpec, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { speaksMessages } from "../../upstreams/protocols.ts";
import { toMessages } from "../../upstreams/text/anthropic/request.ts";
import { Untranslatable } from "../../upstreams/text/anthropic/untranslatable.ts";
import { toResponsesRequest } from "../../upstreams/text/chat/request.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import { messagesToolTokens } from "../base/limits.ts";
import { unsupported } from "./fields.ts";

/** The upstreams that can do all that a body asks for. */
export interface Suitable {
  upstreams: readonly Upstream[];
  /** Tokens that one of them adds for the tools of the request. */
  toolTokens: number;
}

/**
 * Leaves out upstreams of Messages where these have no form for something in the body. Refuses at its field where no others are there.
 * The translation for an upstream is made later, when media are in place. This one only tells whether it can be made.
 */
export function suitableUpstreams(
  upstreams: readonly Upstream[],
  body: JsonObject,
  operation: TextOperation,
  spec: ChatSpec,
): Awaitable<Suitable> {
  const others = upstreams.filter(({ protocol }) => !speaksMessages(protocol));
  return after(inTurns(tried(body, operation, spec)), (found) => {
    if (!(found instanceof Untranslatable)) {
      return { upstreams, toolTokens: found > 0 ? messagesToolTokens : 0 };
    }
    if (others.length === 0) refuseAt(found, operation);
    return { upstreams: others, toolTokens: 0 };
  });
}

/** The number of the request's tools in the form of Messages, or the first part without such a form. */
function* tried(
  body: JsonObject,
  operation: TextOperation,
  { passParameters, refusesForcedTools }: ChatSpec,
): Generator<void, number | Untranslatable> {
  const asked = operation === "chat" ? toResponsesRequest(body, passParameters) : body;
  const options = { betas: [], passParameters, refusesForcedTools };
  try {
    const { tools } = yield* toMessages(asked, options);
    return tools.size;
  } catch (error) {
    if (error instanceof Untranslatable) return error;
    throw error;
  }
}

/** Names of Responses that callers of Chat know under another one. */
const inChat: readonly (readonly [name: RegExp, name: string])[] = [
  [/^input\b.*/, "messages"],
  [/^include\b.*/, "logprobs"],
  [/^text\.format\b/, "response_format"],
];

function refuseAt({ param, message, kind }: Untranslatable, operation: TextOperation): never {
  const names = operation === "chat" ? inChat : [];
  const path = names.reduce((found, [name, inTheirs]) => found.replace(name, inTheirs), param);
  if (kind === "unsupported") unsupported(path, message);
  return refuse(ErrorReason.INVALID_VALUE, { param: path, message });
}
