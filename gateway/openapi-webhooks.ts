// Describes webhooks for the OpenAPI document. Media sends them.

import { dateTime, integer, nullable, object, type Schema, string } from "./schemas.ts";

const micros = (description: string) => integer(`${description}, in USD micros.`);

const job: Schema = { $ref: "#/components/schemas/Job" };
const ofAccount = { accountId: string("The account.") };
const balanceLow = object(
  {
    ...ofAccount,
    keyId: nullable(string("The key whose alert this is. Null: the account's.")),
    availableUsdMicros: micros("Funds at hand, held ones included"),
    lowBalanceUsdMicros: micros("The bound below which they fell"),
  },
  ["accountId", "keyId", "availableUsdMicros", "lowBalanceUsdMicros"],
);
const limitReached = object(
  {
    ...ofAccount,
    keyId: string("The key."),
    limitUsdMicros: micros("Its limit"),
    limit_reset: nullable(
      string("When the limit begins anew. Null: never.", { enum: ["daily", "weekly", "monthly"] }),
    ),
  },
  ["accountId", "keyId", "limitUsdMicros", "limit_reset"],
);

/** The cause of each type of event, and the schema of its `data`. */
const events: Readonly<Record<string, [summary: string, data: Schema]>> = {
  "job.completed": ["A job is completed", job],
  "job.failed": ["A job failed", job],
  "job.cancelled": ["A job was canceled by its caller", job],
  "balance.low": ["The funds of an account fell below a bound", balanceLow],
  "key.limit_reached": ["A request was refused for its key's limit", limitReached],
};

const headers = [
  ["webhook-id", "The same for the same event, however often it is sent."],
  ["webhook-timestamp", "Seconds since 1970 at which this attempt began."],
  ["webhook-signature", "One or two signatures by Standard Webhooks, separated by a space."],
].map(([name, description]) => ({
  ...{ name, in: "header", required: true, description, schema: { type: "string" } },
}));

/** The `webhooks` of the API's description: requests that genmesh sends. */
export const describedWebhooks = Object.fromEntries(
  Object.entries(events).map(([type, [summary, data]]) => [
    type,
    {
      post: {
        operationId: `on_${type.replaceAll(".", "_")}`,
        summary,
        tags: ["Webhooks"],
        description: "Sent until it is answered with 2xx, for 24 hours. It may come twice.",
        parameters: headers,
        requestBody: {
          required: true,
          content: { "application/json": { schema: eventOf(type, data) } },
        },
        responses: {
          "2XX": { description: "It has arrived." },
          "410": { description: "It is not wanted, and is not sent again." },
        },
        // It is signed, and has no key of the API.
        security: [],
      },
    },
  ]),
);

function eventOf(type: string, data: Schema): Schema {
  const timestamp = dateTime("When it happened.");
  return object({ type: { type: "string", const: type }, timestamp, data }, [
    ...["type", "timestamp", "data"],
  ]);
}
