// Adds the commands `genmesh hold …`, by which an operator lists open holds and ends one by hand.

import type { Command } from "commander";
import { holdKindName, isoTime, unitName } from "#common/documents/answer-values.ts";
import { printedHold, printedReview } from "#common/documents/hold-document.ts";
import { type Hold, HoldState } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { ConfigError } from "../env.ts";
import { type Sum, sumIn, sumOption, withExamples } from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { dollars, printJson, printTable, sumWords } from "./output.ts";
import type { Cli } from "./program.ts";

export function holdCommands(program: Command, cli: Cli): void {
  const hold = withExamples(
    program.command("hold").description("money that is set aside"),
    "hold list",
    "hold settle req_… --usd 0.0012",
    "hold release req_…",
  );
  withExamples(
    hold
      .command("list [account]")
      .description(
        "open holds with their owner and age; and usage that upstreams reported beyond belief",
      ),
    "hold list",
  ).action((accountId?: string) => list(cli, accountId ?? ""));
  const settle = hold
    .command("settle <hold>")
    .description("end a hold that stands in review by charging it");
  withExamples(
    sumOption(settle, "at most what is held"),
    "hold settle req_… --usd 0.0012",
    "hold settle req_… --amount 12",
  ).action((holdId: string, sum: Sum) => {
    const isNamed = sum.usd !== undefined || sum.amount !== undefined;
    if (!isNamed) throw new ConfigError("what to charge is missing: give --usd or --amount");
    return end(cli, holdId, sum);
  });
  withExamples(
    hold.command("release <hold>").description("end a hold that stands in review without a charge"),
    "hold release req_…",
  ).action((holdId: string) => end(cli, holdId, {}));
}

async function list(cli: Cli, accountId: string): Promise<void> {
  const peers = cli.peers();
  const { reviews } = await peers.text.listReviews({ accountId });
  const settled = reviews.filter(({ chargedUsdMicros }) => chargedUsdMicros !== undefined);
  // Holds of an older release, which left them to the operator.
  const inReview = new Map(
    reviews
      .filter((review) => !settled.includes(review))
      .map((review) => [review.holdId, review.reportedUsage]),
  );
  const open: Hold[] = [];
  for await (const hold of openHolds(cli, accountId)) open.push(hold);
  const reviewOf = ({ holdId }: Hold) => inReview.get(holdId);
  const shown = settled.map(printedReview);
  if (cli.json) {
    const holds = open.map((hold) => printedHold(hold, reviewOf(hold)));
    return printJson(cli, { holds, reviews: shown });
  }
  printTable(
    cli,
    ["hold", "account", "owner", "for", "amount", "opened", "review"],
    open.map((hold) => [
      hold.holdId,
      hold.accountId,
      holdKindName(hold.kind),
      hold.ref,
      sumWords(hold.unit, hold.amount),
      isoTime(hold.openTime),
      reviewOf(hold) ?? "",
    ]),
    "no open holds",
  );
  if (shown.length === 0) return;
  cli.out("\nreported usage that was not believed; charged by our own count, nothing is held\n");
  printTable(
    cli,
    ["hold", "account", "model", "reported", "charged", "at"],
    shown.map((row) => [
      row.holdId,
      row.accountId,
      row.model,
      row.reported,
      dollars(row.chargedUsdMicros),
      row.at,
    ]),
    "",
  );
}

async function end(cli: Cli, holdId: string, sum: Sum): Promise<void> {
  const { accountId, unit } = await find(cli, holdId);
  const settleAmount = sumIn(unit, sum);
  const isSettled = settleAmount !== undefined;
  const details = { unit: unitName(unit), amount: isSettled ? `${settleAmount}` : null };
  const action = isSettled ? "hold.settle" : "hold.release";
  const answer = await auditedByCli(cli, { action, accountId, target: holdId, details }, () =>
    cli.peers().billing.endHold({
      ...{ accountId, unit, holdId },
      ...(isSettled ? { settleAmount } : {}),
    }),
  );
  const state = answer.state === HoldState.SETTLED ? "settled" : "released";
  if (cli.json) printJson(cli, { holdId, state, chargedAmount: answer.chargedAmount });
  else cli.out(`${holdId} is ${state}; charged: ${sumWords(unit, answer.chargedAmount)}\n`);
}

async function find(cli: Cli, holdId: string): Promise<Hold> {
  for await (const hold of openHolds(cli, "")) if (hold.holdId === holdId) return hold;
  throw new Error(`there is no open hold ${holdId}`);
}

async function* openHolds(cli: Cli, accountId: string): AsyncGenerator<Hold> {
  const { billing } = cli.peers();
  let pageToken = "";
  do {
    const page = await billing.listHolds({ accountId, pageSize: 1000, pageToken });
    yield* page.holds;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}
