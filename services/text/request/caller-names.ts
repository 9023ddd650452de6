import { createHmac } from "node:crypto";
import type { JsonObject } from "#kit/base/json.ts";
import { callerNames } from "../../upstreams/text/responses/complete-response.ts";

/**
 * The names of a caller's end users and caches as they go upstream: keyed with the account, because all accounts are one to the upstream. Two accounts that use the same
 * name share no cache, none can ask for what another's name holds, and no upstream learns who a caller's users are. Changes `body`.
 */
export function nameForAccount(body: JsonObject, accountId: string): void {
  for (const name of callerNames) {
    const value = body[name];
    if (typeof value !== "string" || value === "") continue;
    // 43 characters: upstreams take 64.
    body[name] = createHmac("sha256", accountId).update(value).digest("base64url");
  }
}
