import { queryOf } from "../../api.ts";
import { useApi } from "../../hooks.ts";
import { ErrorText, Waiting } from "../../kit/states.tsx";
import { type AdminHold, type AdminKey, type AdminList, admin } from "./types.ts";

/** The most that one page of the operator's lists has. */
const pageSize = 100;

/** The number of keys that an action stops, and of their requests and jobs that run. `keyId`: the action is for this key alone. */
export function WhatStops({ accountId, keyId }: { accountId: string; keyId?: string }) {
  const of = queryOf({ account: accountId, limit: pageSize });
  const keys = useApi<AdminList<AdminKey>>(keyId ? null : `${admin}/keys${of}`);
  const holds = useApi<AdminList<AdminHold>>(`${admin}/holds${of}`);
  if (keys.error || holds.error) return <ErrorText error={keys.error ?? holds.error} />;
  if (!holds.data || (!keyId && !keys.data)) return <Waiting lines={1} />;
  const running = holds.data.data.filter((hold) => !keyId || hold.keyId === keyId);
  const usable = keys.data?.data.filter(({ state }) => state === "active") ?? [];
  return (
    <p>
      {!keyId && (
        <>
          <strong>{counted(usable.length, keys.data?.next, "key", "keys")}</strong> will be refused.{" "}
        </>
      )}
      <strong>
        {counted(running.length, holds.data.next, "request or job", "requests and jobs")}
      </strong>{" "}
      {running.length === 1 ? "runs" : "run"} now: they go on, and are charged.
    </p>
  );
}

function counted(
  count: number,
  next: string | null | undefined,
  one: string,
  many: string,
): string {
  return `${count}${next ? " or more" : ""} ${count === 1 ? one : many}`;
}
