import type { Column } from "../kit/table.tsx";
import { ShortId, When } from "../kit/values.tsx";
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

/** The number of attempts. */
export function attemptsOf({ attempts }: Pick<Webhook, "attempts">): string {
  return `${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
}
