import type { Command } from "commander";
import { holdKindName, isoTime, unitName } from "#kit/answer-values.ts";
import { type Hold, HoldState } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { amount, withExamples } from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

/** `genmesh hold …` */
export function holdCommands(program: Command, cli: Cli): void {
  const hold = withExamples(
    program.command("hold").description("money that is set aside"),
    "hold list",
    "hold settle req_… --amount 1200",
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
  withExamples(
    hold
      .command("settle <hold>")
      .description("end a hold that stands in review by charging it")
      .requiredOption("--amount <amount>", "in the hold's unit, at most what is held", amount),
    "hold settle req_… --amount 1200",
  ).action((holdId: string, options: { amount: bigint }) => end(cli, holdId, options.amount));
  withExamples(
    hold.command("release <hold>").description("end a hold that stands in review without a charge"),
    "hold release req_…",
  ).action((holdId: string) => end(cli, holdId));
}

async function list(cli: Cli, accountId: string): Promise<void> {
  const peers = cli.peers();
  const { reviews } = await peers.text.listReviews({ accountId });
  const settled = reviews.filter(({ chargedUsdMicros }) => chargedUsdMicros !== undefined);
  // Of an older release, which left the hold to the operator.
  const inReview = new Map(
    reviews
      .filter((review) => !settled.includes(review))
      .map((review) => [review.holdId, review.reportedUsage]),
  );
  const rows = [];
  for await (const hold of openHolds(cli, accountId)) {
    rows.push({
      holdId: hold.holdId,
      accountId: hold.accountId,
      owner: holdKindName(hold.kind),
      ref: hold.ref,
      amount: hold.amount,
      unit: unitName(hold.unit),
      openedAt: isoTime(hold.openTime),
      review: inReview.get(hold.holdId),
    });
  }
  const shown = settled.map((review) => ({
    holdId: review.holdId,
    accountId: review.accountId,
    model: review.model,
    reported: review.reportedUsage,
    chargedUsdMicros: review.chargedUsdMicros ?? 0n,
    at: isoTime(review.reviewTime),
  }));
  if (cli.json) return printJson(cli, { holds: rows, reviews: shown });
  printTable(
    cli,
    ["hold", "account", "owner", "for", "amount", "unit", "opened", "review"],
    rows.map((row) => [
      row.holdId,
      row.accountId,
      row.owner,
      row.ref,
      String(row.amount),
      row.unit,
      row.openedAt,
      row.review ?? "",
    ]),
    "no open holds",
  );
  if (shown.length === 0) return;
  cli.out("\nreported usage that was not believed; charged by our own count, nothing is held\n");
  printTable(
    cli,
    ["hold", "account", "model", "reported", "charged usd_micros", "at"],
    shown.map((row) => [
      row.holdId,
      row.accountId,
      row.model,
      row.reported,
      String(row.chargedUsdMicros),
      row.at,
    ]),
    "",
  );
}

async function end(cli: Cli, holdId: string, settleAmount?: bigint): Promise<void> {
  const hold = await find(cli, holdId);
  const { accountId, unit } = hold;
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
  else cli.out(`${holdId} is ${state}; charged: ${answer.chargedAmount} ${unitName(hold.unit)}\n`);
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
