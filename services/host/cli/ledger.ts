import type { Command } from "commander";
import { type LedgerDifference, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { withExamples } from "./help.ts";
import { printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

/** `genmesh ledger …` */
export function ledgerCommands(program: Command, cli: Cli): void {
  const ledger = withExamples(program.command("ledger").description("the books"), "ledger audit");
  withExamples(
    ledger
      .command("audit [account]")
      .description("recompute every balance from its entries; exit 1 where something differs"),
    "ledger audit",
    "ledger audit acct_… --json",
  ).action((accountId?: string) => audit(cli, accountId ?? ""));
}

async function audit(cli: Cli, accountId: string): Promise<void> {
  // Billing knows wallets, not accounts: it has none of one that does not exist.
  if (accountId !== "") await cli.peers().auth.getAccount({ accountId });
  const differences: LedgerDifference[] = [];
  let read = { wallets: 0n, entries: 0n };
  let complete = false;
  for await (const { finding } of cli
    .peers()
    .billing.auditLedger({ accountId }, { timeoutMs: 0 })) {
    if (finding.case === "difference") differences.push(finding.value);
    if (finding.case === "summary") {
      read = { wallets: finding.value.wallets, entries: finding.value.entries };
      complete = true;
    }
  }
  // An audit that was cut short has proved nothing.
  if (!complete) throw new Error("the audit ended before all was read");
  if (differences.length > 0) cli.exitCode = 1;
  const rows = differences.map((one) => ({
    accountId: one.accountId,
    unit: unitName(one.unit),
    field: one.field,
    entry: one.entryNumber,
    recorded: one.recorded,
    computed: one.computed,
  }));
  if (cli.json) return printJson(cli, { ok: rows.length === 0, ...read, differences: rows });
  if (rows.length > 0) {
    printTable(
      cli,
      ["account", "unit", "field", "entry", "recorded", "computed"],
      rows.map((one) => [
        one.accountId,
        one.unit,
        one.field,
        `${one.entry}`,
        one.recorded,
        one.computed,
      ]),
      "",
    );
  }
  const verdict = rows.length === 0 ? "the books agree" : `${rows.length} differences`;
  cli.out(`${read.wallets} wallets, ${read.entries} entries: ${verdict}\n`);
}

function unitName(unit: Unit): string {
  return unit === Unit.CREDITS ? "credits" : "usd_micros";
}
