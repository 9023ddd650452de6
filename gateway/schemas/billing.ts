import { errors, integer, json, object, type RouteSchema } from "./common.ts";

const micros = (description: string) => integer(`${description}, in millionths of a US dollar.`);

export const getBillingSchema: RouteSchema = {
  operationId: "getBilling",
  summary: "Get the balance",
  description:
    "The prepaid wallets of the key's account: US dollars pay for text and speech, credits for image, video and music jobs.",
  tags: ["Billing"],
  response: {
    200: json(
      "The balance.",
      object(
        {
          availableUsdMicros: micros("Funded balance"),
          reservedUsdMicros: micros("Sum of what is held for requests in flight"),
          spendableUsdMicros: micros("Available less reserved"),
          monthSpendUsdMicros: micros("Charged in this calendar month (UTC)"),
          credits: object({
            available: integer("Funded credits."),
            reserved: integer("Held for jobs."),
            spendable: integer("Available less reserved."),
            monthSpent: integer("Charged in this calendar month (UTC)."),
          }),
        },
        ["availableUsdMicros", "reservedUsdMicros", "spendableUsdMicros", "monthSpendUsdMicros"],
      ),
      {
        availableUsdMicros: 25_000_000,
        reservedUsdMicros: 0,
        spendableUsdMicros: 25_000_000,
        monthSpendUsdMicros: 0,
        credits: { available: 10_000, reserved: 0, spendable: 10_000, monthSpent: 0 },
      },
    ),
    ...errors(),
  },
};
