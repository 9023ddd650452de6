// Adds `genmesh ledger margin`: charges beside the cost at the upstreams.

import { type Command, Option } from "commander";
import { marginDocument } from "#common/documents/margin-document.ts";
import type { Margin } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { time, withExamples } from "./arguments.ts";
import { dollars, printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

const parts = ["day", "model", "upstream"] as const;
type Part = (typeof parts)[number];

interface Options {
  from?: number;
  to?: number;
  by: readonly Part[];
}

const dayMs = 86_400_000;
/** Days where the operator names no time: those of a month. */
const usualDays = 31;

/** Adds `ledger margin`. */
export function marginCommand(ledger: Command, cli: Cli): void {
  withExamples(
    ledger
      .command("margin [account]")
      .description("what requests were charged, and what they cost at the upstreams")
      .option(
        "--from <time>",
        `ISO 8601: from its day (UTC) on; ${usualDays} days by default`,
        time,
      )
      .option("--to <time>", "ISO 8601: only days that begin before it; now by default", time)
      .addOption(
        new Option("--by <parts...>", "a line for each")
          .choices(parts)
          .default(["model", "upstream"]),
      ),
    "ledger margin",
    "ledger margin acct_… --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z --by day",
    "ledger margin --by day model upstream --json",
  ).action((accountId: string | undefined, options: Options) =>
    margin(cli, accountId ?? "", options),
  );
}

async function margin(cli: Cli, accountId: string, { from, to, by }: Options): Promise<void> {
  if (accountId !== "") await cli.peers().auth.getAccount({ accountId });
  const endDay = Math.ceil((to ?? Date.now()) / dayMs);
  const firstDay = from === undefined ? endDay - usualDays : Math.floor(from / dayMs);
  const margins: Margin[] = [];
  for (let day = firstDay; ; ) {
    const page = await cli.peers().billing.getMargins({
      ...{ accountId, startSeconds: BigInt(day * 86_400), days: Math.max(0, endDay - day) },
      byDay: by.includes("day"),
      byModel: by.includes("model"),
      byUpstream: by.includes("upstream"),
    });
    margins.push(...page.margins);
    if (page.nextStartSeconds === 0n) break;
    day = Number(page.nextStartSeconds) / 86_400;
  }
  const documents = margins.map(marginDocument);
  if (cli.json) return printJson(cli, { margins: documents });
  const rows = documents.map((one) => [
    ...by.map((part) => one[part] ?? "–"),
    ...[`${one.requests}`, dollars(one.spentUsdMicros), `${one.spentCredits}`],
    ...[`${one.costedRequests}`, dollars(one.costedUsdMicros)],
    ...[dollars(one.upstreamCostUsdMicros), dollars(one.marginUsdMicros)],
  ]);
  const known = ["with a known cost", "charged for these", "their cost", "margin"];
  const head = [...by, "requests", "charged", "credits", ...known];
  printTable(cli, head, rows, "Nothing was used in this time.");
}
