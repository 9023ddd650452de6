// Changes an account for an operator, in the console and by the command, so that both mean the same and leave the same audit
// log.

import type { CallOptions } from "@connectrpc/connect";
import type { JsonObject } from "#kit/base/json.ts";
import { settingsBody } from "#kit/base/settings-body.ts";
import type { Account } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { Peers } from "./peers.ts";

/** Properties that a change of an account may have. Auth reads all of them. Billing keeps the monthly grant. */
export const accountProperties: readonly string[] = [
  ...["name", "notes", "requestsPerMinute"],
  ...["monthlyGrantUsdMicros", "monthlyGrantCredits"],
];

/** Changes an account for an operator. Refuses as auth's UpdateAccount does. */
export async function changeAccount(
  { auth, billing }: Pick<Peers, "auth" | "billing">,
  accountId: string,
  change: JsonObject,
  options: CallOptions = {},
): Promise<Account> {
  const body = settingsBody(change);
  const { account, monthlyGrant } = await auth.updateAccount({ accountId, body }, options);
  if (!account) throw new Error("auth answered no account and did not refuse");
  // Where this fails, repeating the change has the same result.
  if (monthlyGrant) {
    const { usdMicros, credits } = monthlyGrant;
    const asked = {
      ...(usdMicros === undefined ? {} : { usdMicros }),
      ...(credits === undefined ? {} : { credits }),
    };
    await billing.setMonthlyGrant({ accountId, ...asked }, options);
  }
  return account;
}

/** The words of the audit log about a change: the names of its properties, and their figures. Texts that people write stay out of it. */
export function accountChangeDetails(change: JsonObject): Record<string, string | number | null> {
  const asked = Object.entries(change).filter(([name]) => accountProperties.includes(name));
  const figures = asked.flatMap(([name, value]) =>
    typeof value === "number" || value === null ? [[name, value] as const] : [],
  );
  return { changed: asked.map(([name]) => name).join(", "), ...Object.fromEntries(figures) };
}
