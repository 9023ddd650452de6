// The difference between another genmesh and other upstreams with OpenAI's API, for the driver of text.

import type { HttpExtras } from "../text/http-driver.ts";

/**
 * Another deployment finds a repeated request by our id, and reports which fields it did not send to its upstream. A stream has no id:
 * with one it would go on there for a moment after its caller has left.
 */
export const genmeshText: HttpExtras = {
  headers: ({ requestId, stream }) => (stream ? {} : { "idempotency-key": requestId }),
  ignored({ headers }) {
    const names = headers["x-genmesh-ignored-parameters"]?.split(/, */) ?? [];
    return names.filter((name) => /^[\w.~%-]{1,64}$/.test(name));
  },
};
