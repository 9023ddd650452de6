// Makes the demo account at the first start on an empty data directory, so that a newcomer has a key and a balance. A run in one
// process and a mesh on one machine call it.

import type { Peers } from "#common/agreements/peers.ts";
import { ownerScopes } from "#common/words/scopes.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Config } from "./config.ts";
import type { DataDir } from "./data-dir.ts";

/** Present once the demo account is complete and its key was shown. */
const doneFile = "bootstrapped";
/** Holds the made key from before the account exists until the key was shown, so that no crash in between loses it. */
const pendingKeyFile = "bootstrap-key";
const operationId = "bootstrap";

/** The part of the ready line about the demo account. */
export interface Bootstrap {
  /** The new key, to be shown once. Undefined where it was shown before, or where the operator chose it. */
  apiKey: string | undefined;
  /** To be called once the key was shown. */
  shown(): void;
}

/**
 * Makes the demo account of a new data directory: its key, then the opening balance. Each step may be repeated, so the next start
 * completes one that was killed half-way.
 */
export async function bootstrap(
  dir: DataDir,
  settings: Config["bootstrap"],
  deps: { peers: Peers; ids: Ids; adminToken: string; log: Logger },
): Promise<Bootstrap> {
  if (dir.read(doneFile) !== undefined) return { apiKey: undefined, shown() {} };
  const kept = dir.read(pendingKeyFile)?.trim();
  const given = kept === undefined ? settings.apiKey : undefined;
  const secret = kept ?? given ?? `gm_${deps.ids.secret()}`;
  if (kept === undefined) dir.write(pendingKeyFile, `${secret}\n`);
  const headers = { authorization: `Bearer ${deps.adminToken}` };
  const account = await makeAccount(secret, headers, deps.peers);
  if (!account) {
    deps.log.warn("the database has a demo account already, with a key that this directory lacks");
    return { apiKey: undefined, shown: () => done(dir) };
  }
  const { accountId } = account;
  const funds = [
    [Unit.USD_MICROS, settings.usdMicros],
    [Unit.CREDITS, settings.credits],
  ] as const;
  for (const [unit, amount] of funds) {
    if (amount > 0n)
      await deps.peers.billing.grant({ accountId, unit, amount, operationId }, { headers });
  }
  return {
    // The operator knows a key that the operator chose, so it is not printed.
    apiKey: secret === settings.apiKey ? undefined : secret,
    shown: () => done(dir),
  };
}

function done(dir: DataDir): void {
  dir.write(doneFile, "");
  dir.remove(pendingKeyFile);
}

/** Undefined where another data directory has made the account in the same database. */
async function makeAccount(apiKey: string, headers: Record<string, string>, peers: Peers) {
  const request = { name: "demo", apiKey, operationId, scopes: [...ownerScopes] };
  try {
    return (await peers.auth.createAccount(request, { headers })).account;
  } catch (error) {
    if (isRefusal(error, ErrorReason.OPERATION_MISMATCH)) return undefined;
    throw error;
  }
}
