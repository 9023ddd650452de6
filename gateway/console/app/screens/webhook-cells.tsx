// Cells of a list of webhooks. The account's own screen and the operator's share them.

import { Explained } from "../kit/explained.tsx";
import type { Column } from "../kit/table.tsx";
import { ShortId, When } from "../kit/values.tsx";
import { meaningOf } from "../statuses.ts";
import type { Webhook } from "../types.ts";

/** A webhook's time, and its id. */
export const sentAt: Column<Pick<Webhook, "id" | "createdAt">> = {
  head: "Time",
  cell: (hook) => (
    <>
      <When at={hook.createdAt} style="second" />
      <span class="sub">
        <ShortId id={hook.id} />
      </span>
    </>
  ),
};

/** The answer to the last attempt, or why there is none, with its meaning. */
export function LastAnswer({ of: hook }: { of: Pick<Webhook, "lastStatus" | "lastError"> }) {
  const { lastStatus, lastError } = hook;
  if (lastStatus === null && lastError === null) return <span class="muted">none yet</span>;
  const meaning = lastError === null ? taken : meaningOf("deliveryError", lastError);
  return <Explained meaning={meaning}>{lastStatus ?? lastError}</Explained>;
}

const taken = "Its receiver took it.";

/** The number of attempts. */
export function attemptsOf({ attempts }: Pick<Webhook, "attempts">): string {
  return `${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
}
