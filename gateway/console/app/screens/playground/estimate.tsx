// Shows the price of a chat's message before it is sent.

import { useEffect, useState } from "preact/hooks";
import { call } from "../../api.ts";
import { count } from "../../format.ts";
import { Money } from "../../kit/values.tsx";
import type { Model } from "../../types.ts";
import type { Ask } from "./chat-turns.ts";

interface Counted {
  input_tokens: number;
  costUsdMicros: number;
  holdUsdMicros: number;
}

/** Ms without typing after which the service is asked for the cost of the message. */
const countPauseMs = 600;

/** The cost of the message before it is sent. While it is empty, only the prices. */
export function Estimate({
  model,
  ask: { body, isResponses },
  isEmpty,
  isNamed,
}: {
  model: Model | undefined;
  ask: Ask;
  isEmpty: boolean;
  /** Says which model it is. */
  isNamed: boolean;
}) {
  const pricing = model?.pricing;
  const [counted, setCounted] = useState<Counted | undefined>();
  useEffect(() => {
    // Only `/responses` has a count before the request.
    if (isEmpty || !isResponses) return setCounted(undefined);
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const asked = { ...body, stream: undefined };
      const options = { method: "POST", body: asked, signal: abort.signal } as const;
      call<Counted>("/responses/input_tokens", options).then(setCounted, () =>
        setCounted(undefined),
      );
    }, countPauseMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [body, isEmpty, isResponses]);
  return (
    <p class="fine muted">
      {isNamed && `${model?.name}: `}
      {counted ? (
        <>
          {count(counted.input_tokens)} tokens in:{" "}
          <strong>
            <Money micros={counted.costUsdMicros} digits="price" />
          </strong>
          , with the longest answer at most <Money micros={counted.holdUsdMicros} digits="price" />
        </>
      ) : (
        pricing?.inputUsdMicrosPerMillionTokens !== undefined && (
          <>
            <Money micros={pricing.inputUsdMicrosPerMillionTokens} digits="price" /> in and{" "}
            <Money micros={pricing.outputUsdMicrosPerMillionTokens ?? 0} digits="price" /> out per
            million tokens
          </>
        )
      )}
    </p>
  );
}
