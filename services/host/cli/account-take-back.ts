// Adds `genmesh account take-back`: removes funds of a grant that were added by mistake.

import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { unitName } from "#common/documents/answer-values.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { balance } from "./account-balance.ts";
import {
  operationId,
  type Sum,
  sumIn,
  sumOption,
  unit,
  wholeNumber,
  withExamples,
} from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { printJson, sumWords } from "./output.ts";
import type { Cli } from "./program.ts";

interface TakeBackOptions extends Sum {
  entry: number;
  unit?: Unit;
  upTo?: boolean;
  operationId?: string;
}

export function takeBackCommand(account: Command, cli: Cli): void {
  const command = account
    .command("take-back <account>")
    .description("take funds back that were added by mistake, as far as they are free")
    .requiredOption(
      "--entry <number>",
      "the number of the entry that added them",
      wholeNumber(1, Number.MAX_SAFE_INTEGER),
    )
    .option("--unit <unit>", "the wallet: usd_micros or credits; default: usd_micros", unit);
  withExamples(
    sumOption(command, "a part of the entry (default: all that is left of it)")
      .option("--up-to", "where less is free, take what there is")
      .option("--operation-id <id>", "a repeat with the same id changes nothing", operationId),
    "account take-back acct_… --entry 5 --operation-id ticket-12",
    "account take-back acct_… --entry 5 --usd 20 --up-to",
  ).action((accountId: string, options: TakeBackOptions) => takeBack(cli, accountId, options));
}

async function takeBack(cli: Cli, accountId: string, options: TakeBackOptions): Promise<void> {
  const { entry, unit = Unit.USD_MICROS, upTo = false, operationId = randomUUID() } = options;
  const amount = sumIn(unit, options);
  const peers = cli.peers();
  await peers.auth.getAccount({ accountId });
  const asked = amount === undefined ? null : `${amount}`;
  const details = { unit: unitName(unit), amount: asked, operationId, upTo };
  const { takenAmount, entryNumber, replayed } = await auditedByCli(
    cli,
    { action: "account.take_back", accountId, target: `entry ${entry}`, details },
    () =>
      peers.billing.takeBack({
        ...{ accountId, unit, operationId, upTo },
        entryNumber: BigInt(entry),
        ...(amount === undefined ? {} : { amount }),
      }),
  );
  if (cli.json) {
    const done = { accountId, unit: unitName(unit), entry, takeBackEntry: entryNumber };
    return printJson(cli, { ...done, amount: takenAmount, replayed });
  }
  if (replayed) cli.out("This operation was made before; nothing was taken.\n");
  else cli.out(`${sumWords(unit, takenAmount)} of entry ${entry} were taken back.\n`);
  await balance(cli, accountId);
}
