// Adds `genmesh account alerts`: shows and changes when an account is warned that money runs low.

import type { Command } from "commander";
import { settingsBody } from "#kit/base/settings-body.ts";
import { type AmountOrNone, moneyOption, numberOrNull, withExamples } from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { dollars, printFacts, printJson } from "./output.ts";
import type { Cli } from "./program.ts";

interface AlertOptions {
  lowBalanceUsd?: AmountOrNone;
  lowBalanceUsdMicros?: AmountOrNone;
  webhookUrl?: string;
}

export function alertsCommand(account: Command, cli: Cli): void {
  withExamples(
    moneyOption(
      account
        .command("alerts <account>")
        .description(
          "when and where an account is told that its funds run low; changes what is named",
        ),
      "low-balance-usd",
      { words: "available funds below which it is told, or none", orNone: true },
    ).option("--webhook-url <url>", "where it is told, or none"),
    "account alerts acct_…",
    "account alerts acct_… --low-balance-usd 5.00 --webhook-url https://example.com/hooks",
  ).action((accountId: string, options: AlertOptions) => alerts(cli, accountId, options));
}

async function alerts(cli: Cli, accountId: string, options: AlertOptions): Promise<void> {
  const { auth, billing } = cli.peers();
  // Billing knows wallets, not accounts. It would keep alerts of an account that does not exist.
  await auth.getAccount({ accountId });
  const { webhookUrl, lowBalanceUsd, lowBalanceUsdMicros = lowBalanceUsd } = options;
  const changes = {
    ...(lowBalanceUsdMicros === undefined
      ? {}
      : { lowBalanceUsdMicros: numberOrNull(lowBalanceUsdMicros) }),
    ...(webhookUrl === undefined ? {} : { webhookUrl: webhookUrl === "none" ? null : webhookUrl }),
  };
  const changed = Object.keys(changes);
  const body = settingsBody(changes);
  const set =
    changed.length === 0
      ? await billing.getAlerts({ accountId })
      : (
          await auditedByCli(
            cli,
            { action: "account.alerts", accountId, details: { changed: changed.join(", ") } },
            () => billing.updateAlerts({ accountId, body }),
          )
        ).alerts;
  const low = set?.lowBalanceUsdMicros;
  const url = set?.webhookUrl || undefined;
  if (cli.json) {
    printJson(cli, { accountId, lowBalanceUsdMicros: low ?? null, webhookUrl: url ?? null });
    return;
  }
  printFacts(cli, [
    ["low balance", low === undefined ? "none" : dollars(low)],
    ["webhook", url ?? "none"],
  ]);
}
