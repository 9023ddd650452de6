// Adds the commands `genmesh ledger …`: the audit of wallets against their entries, the export, and margins.

import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { unitName } from "#common/documents/answer-values.ts";
import {
  operatorEntryColumns,
  operatorEntryCsv,
  operatorEntryDocument,
} from "#common/documents/entry-document.ts";
import { csvLine } from "#kit/base/csv.ts";
import type { LedgerDifference } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { time, withExamples } from "./arguments.ts";
import { type AuditTotals, auditTotals, type Part, parts } from "./audit-totals.ts";
import { marginCommand } from "./margin.ts";
import { printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

export function ledgerCommands(program: Command, cli: Cli): void {
  const ledger = withExamples(program.command("ledger").description("the books"), "ledger audit");
  withExamples(
    ledger
      .command("audit [account]")
      .description("recompute every balance from its entries; exit 1 where something differs")
      .addOption(new Option("--by <part>", "show what each came to, beside all").choices(parts)),
    "ledger audit",
    "ledger audit acct_… --by key",
    "ledger audit --by account --json",
  ).action((accountId: string | undefined, { by }: { by?: Part }) => {
    return audit(cli, accountId ?? "", auditTotals(by));
  });
  withExamples(
    ledger
      .command("export <account>")
      .description("what moved an account's balances, newest first, with the balance after it")
      .option("--from <time>", "ISO 8601: nothing before it", time)
      .option("--to <time>", "ISO 8601: nothing from it on", time)
      .addOption(
        new Option("--format <format>", "how lines are written")
          .choices(["csv", "jsonl"])
          .default("csv"),
      ),
    "ledger export acct_… --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z",
    "ledger export acct_… --format jsonl",
  ).action((accountId: string, options: ExportOptions) => exportLines(cli, accountId, options));

  marginCommand(ledger, cli);
}

interface ExportOptions {
  from?: number;
  to?: number;
  format: "csv" | "jsonl";
}

async function exportLines(
  cli: Cli,
  accountId: string,
  { from, to, format }: ExportOptions,
): Promise<void> {
  await cli.peers().auth.getAccount({ accountId });
  if (format === "csv") cli.out(csvLine(operatorEntryColumns));
  const until = to === undefined ? {} : { untilTime: timestampFromMs(to) };
  for (let after = ""; ; ) {
    const page = await cli.peers().billing.listLines({
      ...{ accountId, onlyMoney: true, pageSize: 1_000, forOperator: true },
      ...(after === "" ? until : { after }),
    });
    for (const line of page.lines) {
      if (from !== undefined && line.time && timestampMs(line.time) < from) return;
      cli.out(
        format === "csv"
          ? operatorEntryCsv(line)
          : `${JSON.stringify(operatorEntryDocument(line))}\n`,
      );
    }
    if (page.nextPageToken === "") return;
    after = page.nextPageToken;
  }
}

async function audit(cli: Cli, accountId: string, totals: AuditTotals): Promise<void> {
  // Billing knows wallets, not accounts. For an account that does not exist it answers an empty list.
  if (accountId !== "") await cli.peers().auth.getAccount({ accountId });
  const differences: LedgerDifference[] = [];
  let read = { wallets: 0n, entries: 0n };
  let complete = false;
  for await (const { finding } of cli
    .peers()
    .billing.auditLedger({ accountId, totals: true }, { timeoutMs: 0 })) {
    if (finding.case === "difference") differences.push(finding.value);
    if (finding.case === "totals") totals.add(finding.value);
    if (finding.case === "summary") {
      read = { wallets: finding.value.wallets, entries: finding.value.entries };
      complete = true;
    }
  }
  // An audit that ended early has proved nothing.
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
  if (cli.json) {
    const ok = rows.length === 0;
    return printJson(cli, { ok, ...read, differences: rows, ...totals.json() });
  }
  totals.print(cli);
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
