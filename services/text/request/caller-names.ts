import { createHmac } from "node:crypto";
import type { JsonObject } from "#kit/base/json.ts";
import { callerNames } from "../../upstreams/text/responses/complete-response.ts";

/**
 * Hashes the names of a caller's end users and caches with the account, because the upstream sees all accounts as one. So two accounts
 * that use the same name share no cache, and none can ask for the content of another's name. No upstream learns who a caller's users
 * are. Changes `body`.
 */
export function nameForAccount(body: JsonObject, accountId: string): void {
  for (const name of callerNames) {
    const value = body[name];
    if (typeof value !== "string" || value === "") continue;
    // 43 characters. Upstreams take 64.
    body[name] = createHmac("sha256", accountId).update(value).digest("base64url");
  }
}
