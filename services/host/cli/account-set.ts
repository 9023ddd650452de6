// Adds the command `genmesh account set`, which changes an account's name, note, rate and monthly grant.

import type { Command } from "commander";
import { accountChangeDetails, changeAccount } from "#common/agreements/account-change.ts";
import {
  accountState,
  monthlyGrantDocument,
  printedAccount,
} from "#common/documents/account-document.ts";
import { isoTime } from "#common/documents/answer-values.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { Account } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { type MonthlyGrant, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { maxRequestsPerMinute } from "../../auth/limits.ts";
import { ConfigError } from "../env.ts";
import {
  type AmountOrNone,
  amountOrNone,
  moneyOption,
  numberOrNull,
  wholeNumber,
  withExamples,
} from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { printFacts, printJson, sumWords } from "./output.ts";
import type { Cli } from "./program.ts";

interface SetOptions {
  name?: string;
  note?: string;
  rate?: number | "default";
  monthlyGrant?: AmountOrNone;
  monthlyGrantMicros?: AmountOrNone;
  monthlyGrantCredits?: AmountOrNone;
}

export function setCommand(account: Command, cli: Cli): void {
  const command = account
    .command("set <account>")
    .description("change an account; what is not named stays")
    .option("--name <name>", "what people call it")
    .option("--note <text>", "for operators alone; or none")
    .option(
      "--rate <number>",
      "requests a minute of all its keys together, and of each at most; or default",
      rateOrDefault,
    );
  moneyOption(command, "monthly-grant", {
    words: "US dollars that are added on the first day of each month (UTC); or none",
    orNone: true,
  });
  withExamples(
    command.option(
      "--monthly-grant-credits <credits>",
      "credits that are added on the first day of each month (UTC); or none",
      amountOrNone,
    ),
    'account set acct_… --name "Team A" --note "pays by invoice"',
    "account set acct_… --rate 600",
    "account set acct_… --monthly-grant 25.00",
    "account set acct_… --note none --rate default --monthly-grant none",
  ).action((accountId: string, options: SetOptions) => set(cli, accountId, options));
  withExamples(
    account.command("show <account>").description("an account's name, state, notes and settings"),
    "account show acct_…",
  ).action((accountId: string) => show(cli, accountId));
}

async function set(cli: Cli, accountId: string, options: SetOptions): Promise<void> {
  const { name, note, rate, monthlyGrantCredits: credits } = options;
  const { monthlyGrant, monthlyGrantMicros: micros = monthlyGrant } = options;
  const changes: JsonObject = {
    ...(name === undefined ? {} : { name }),
    ...(note === undefined ? {} : { notes: note === "none" ? null : note }),
    ...(rate === undefined ? {} : { requestsPerMinute: rate === "default" ? null : rate }),
    ...(micros === undefined ? {} : { monthlyGrantUsdMicros: numberOrNull(micros) }),
    ...(credits === undefined ? {} : { monthlyGrantCredits: numberOrNull(credits) }),
  };
  if (Object.keys(changes).length === 0) throw new ConfigError("name what to change");
  const account = await auditedByCli(
    cli,
    { action: "account.update", accountId, details: accountChangeDetails(changes) },
    () => changeAccount(cli.peers(), accountId, changes),
  );
  if (cli.json) return print(cli, account);
  cli.out(`${accountId} is changed.\n`);
}

async function show(cli: Cli, accountId: string): Promise<void> {
  const { account } = await cli.peers().auth.getAccount({ accountId });
  await print(cli, account);
}

async function print(cli: Cli, account: Account | undefined): Promise<void> {
  if (!account) throw new Error("auth answered no account and did not refuse");
  const { accountId, name, notes, requestsPerMinute, rateIsSet } = account;
  const { monthlyGrant } = await cli.peers().billing.getMonthlyGrant({ accountId });
  if (cli.json) {
    const grant = monthlyGrantDocument(monthlyGrant);
    const shown = { ...printedAccount(account), notes, monthlyGrant: grant };
    return printJson(cli, { account: shown });
  }
  printFacts(cli, [
    ["account", accountId],
    ["name", name],
    ["state", accountState(account)],
    ["made", isoTime(account.createTime)],
    ["rate", `${requestsPerMinute} requests a minute${rateIsSet ? "" : " (default)"}`],
    ["monthly grant", monthlyGrant ? grantWords(monthlyGrant) : "none"],
    ["notes", notes || "none"],
  ]);
}

function grantWords({ usdMicros, credits, nextTime }: MonthlyGrant): string {
  const sums = [
    ...(usdMicros > 0n ? [sumWords(Unit.USD_MICROS, usdMicros)] : []),
    ...(credits > 0n ? [sumWords(Unit.CREDITS, credits)] : []),
  ];
  return `${sums.join(" and ")}, next at ${isoTime(nextTime)}`;
}

function rateOrDefault(value: string): number | "default" {
  return value === "default" ? value : wholeNumber(1, maxRequestsPerMinute)(value);
}
