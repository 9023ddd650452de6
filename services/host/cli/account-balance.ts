// Prints an account's wallets. Several commands for accounts end with it.

import type { Peers } from "#common/agreements/peers.ts";
import { printedWallets } from "#common/documents/account-document.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { printJson, printTable, sumCell, walletName } from "./output.ts";
import type { Cli } from "./program.ts";

/** An account's wallets, for scripts. */
export async function balances(peers: Peers, accountId: string) {
  return printedWallets(await peers.billing.getBalance({ accountId }));
}

/** Prints an account's wallets. */
export async function balance(cli: Cli, accountId: string): Promise<void> {
  const peers = cli.peers();
  // Billing answers zeros for an account that it does not know.
  await peers.auth.getAccount({ accountId });
  const { usdMicros, credits } = await balances(peers, accountId);
  if (cli.json) return printJson(cli, { accountId, usdMicros, credits });
  const row = (unit: Unit, wallet: typeof usdMicros) => [
    walletName(unit),
    ...[wallet.available, wallet.reserved, wallet.spendable, wallet.monthSpent].map((sum) =>
      sumCell(unit, sum),
    ),
  ];
  printTable(
    cli,
    ["wallet", "available", "reserved", "spendable", "this month"],
    [row(Unit.USD_MICROS, usdMicros), row(Unit.CREDITS, credits)],
    "",
  );
}
