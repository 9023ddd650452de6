// The public document of a key, with what it was charged, and the schemas of the routes for keys.

import type { CallOptions } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type KeyCharges, toKeyDocument } from "#common/documents/key-document.ts";
import { maxWebhookUrlLength } from "#common/words/request-bounds.ts";
import { scopeNames } from "#common/words/scopes.ts";
import type { ApiKey, UpdateManagedKeyResponse } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { Edge } from "./context.ts";
import { deadlinesMs } from "./limits.ts";
import { callerOf, callOptions } from "./request.ts";
import {
  arrayOf,
  boolean,
  dateTime,
  integer,
  json,
  nullable,
  number,
  object,
  ref,
  string,
} from "./schemas.ts";

/** The charges of a key that was made a moment ago. */
export const noUsage: KeyCharges = {
  monthSpent: 0n,
  held: 0n,
  spent: 0n,
  daySpent: 0n,
  weekSpent: 0n,
};

/** The usage of keys of the caller's account, by key id. */
export async function usageOfKeys(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  keys: readonly ApiKey[],
): Promise<(key: ApiKey) => KeyCharges> {
  if (keys.length === 0) return () => noUsage;
  const { accountId } = callerOf(request).principal;
  const answer = await edge.peers.billing.getKeyUsage(
    { accountId, keyIds: keys.map(({ keyId }) => keyId) },
    callOptions(request, reply, deadlinesMs.quick),
  );
  const usages = new Map(answer.keys.map((usage) => [usage.keyId, usage]));
  return ({ keyId }) => usages.get(keyId) ?? noUsage;
}

/** The documents of keys, with their charges. */
export async function keyDocuments(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  keys: readonly ApiKey[],
) {
  const usageOf = await usageOfKeys(edge, request, reply, keys);
  return keys.map((key) => toKeyDocument(key, usageOf(key)));
}

/** The document of one key, which a service's answer must hold. */
export async function keyDocument(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  key: ApiKey | undefined,
) {
  const [document] = key ? await keyDocuments(edge, request, reply, [key]) : [];
  if (!document) throw new Error("auth answered no key and did not refuse");
  return document;
}

/**
 * Informs billing of a change of a key that names its alert. Any other change is not sent. Where this fails, the caller repeats the
 * change, with the same result.
 */
export async function setLowBalance(
  { peers }: Pick<Edge, "peers">,
  { accountId, keyId }: ApiKey,
  change: UpdateManagedKeyResponse["lowBalance"],
  options: CallOptions,
): Promise<void> {
  if (!change) return;
  const { usdMicros } = change;
  await peers.billing.setKeyLowBalance(
    { accountId, keyId, ...(usdMicros === undefined ? {} : { usdMicros }) },
    options,
  );
}

const usd = (description: string) => nullable(number(`${description}, in dollars.`));
const usdMicros = (description: string) => nullable(integer(`${description}, in USD micros.`));
const addedUp =
  "Null for moments after an upgrade, while a long journal is counted for the first time.";
const scopeEnum = { type: "string", enum: Object.keys(scopeNames) };

const limitResets = ["daily", "weekly", "monthly"];

const sharedSchema = {
  label: string("The end of its secret, for people."),
  limit: usd("What it may spend in the time that `limit_reset` says; null: no limit"),
  limit_remaining: usd("What is left of that: the limit less what was spent and what is held"),
  limit_reset: nullable(
    string(
      "When the limit begins anew, at midnight UTC, weeks on Mondays; null beside a limit: never.",
      { enum: limitResets },
    ),
  ),
  usage: usd(`All that it was ever charged. ${addedUp} Text and speech`),
  usage_daily: usd("The same of today (UTC)"),
  usage_weekly: usd("The same of this week, from Monday (UTC)"),
  usage_monthly: usd("The same of this calendar month (UTC); always exact"),
  include_byok_in_limit: boolean("False: no caller brings keys of upstreams."),
  byok_usage: number("0."),
  byok_usage_daily: number("0."),
  byok_usage_weekly: number("0."),
  byok_usage_monthly: number("0."),
  creator_user_id: { type: "null", description: "Not told." },
  expires_at: dateTime("From then on it is invalid; null: never."),
  id: string("Stays over rotations."),
  accountId: string("Its account."),
  scopes: arrayOf(scopeEnum, "Route families that it may use."),
  models: nullable(arrayOf(string("Model id."), "Models that it may use; null: all.")),
  requestsPerMinute: integer("Its rate."),
  spentUsdMicros: usdMicros("As `usage`"),
  spentMonthUsdMicros: usdMicros("As `usage_monthly`"),
  limitUsdMicros: usdMicros("As `limit`"),
  limitRemainingUsdMicros: usdMicros("As `limit_remaining`"),
};

/** A caller's own key. */
export const ownKeySchema = object({
  ...sharedSchema,
  is_free_tier: boolean("False."),
  is_management_key: boolean("Has it the scope `keys`?"),
  is_provisioning_key: boolean("The same."),
  rate_limit: object({
    requests: integer("As `requestsPerMinute`."),
    interval: string("`60s`."),
    note: string("For people."),
  }),
});

/** A key of the account; a component of the description. */
export const managedKeySchema = {
  $id: "Key",
  ...object(
    {
      hash: string("OpenRouter's name for `id`."),
      name: string("What people call it; may be empty."),
      disabled: boolean("It is refused until it is enabled again."),
      webhookUrl: nullable(
        string("Told of its alerts, and of the ends of its jobs that name no other address."),
      ),
      lowBalanceUsdMicros: usdMicros(
        "The webhook is told when the account's available funds fall below this; null: it is not",
      ),
      ...sharedSchema,
      created_at: string("When it was made.", { format: "date-time" }),
      updated_at: dateTime("When it was last changed or rotated."),
      lastUsedAt: dateTime("When it was last used, to the minute and told some seconds later."),
      formerSecretExpiresAt: dateTime("End of the grace of the secret before the last rotation."),
    },
    ["id", "hash", "name", "disabled", "scopes", "models"],
  ),
};

/** `{data}` of one key. */
export const keyAnswer = (description: string) =>
  json(description, object({ data: ref("Key") }, ["data"]));

/** `{data, key}` where a secret was made. */
export const secretAnswer = (description: string) =>
  json(
    description,
    object(
      {
        data: ref("Key"),
        key: nullable(
          string("The secret, shown this once; null in a repeat by `Idempotency-Key`."),
        ),
      },
      ["data", "key"],
    ),
  );

/** Path of a key. */
export const keyParams = object({ keyId: string("The key: its `id`, which is its `hash` too.") }, [
  "keyId",
]);

/** The balance below which a webhook is sent. */
export const lowBalanceField = nullable(
  integer(
    "The webhook is told when the account's available funds fall below this, in USD micros; null: it is not.",
    { minimum: 0 },
  ),
);

/** Properties of a body that makes or changes a key. */
export const keyBodyFields = {
  name: string("1 to 200 characters.", { minLength: 1, maxLength: 200 }),
  limit: nullable(number("Dollars, at most six decimals; null: no limit.")),
  limitUsdMicros: nullable(integer("The same in USD micros; where both are sent they are equal.")),
  limit_reset: nullable(
    string(
      "When the limit begins anew, at midnight UTC, weeks on Mondays; null: never. Not named: monthly, or as it was.",
      { enum: limitResets },
    ),
  ),
  scopes: arrayOf(scopeEnum, "Route families.", { minItems: 1 }),
  models: nullable(arrayOf(string("Model id."), "Models; null: all.", { minItems: 1 })),
  requestsPerMinute: integer("Its rate.", { minimum: 1, maximum: 1_000_000 }),
  webhookUrl: nullable(
    string(
      "Told of its alerts, and of the ends of its jobs whose submissions name no address; null: nobody is.",
      { format: "uri", maxLength: maxWebhookUrlLength },
    ),
  ),
  expiresAt: nullable(
    string("A time to come; null: never. Also as `expires_at`.", { format: "date-time" }),
  ),
};
