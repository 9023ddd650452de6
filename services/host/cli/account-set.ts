import type { Command } from "commander";
import { accountState, printedAccount } from "#common/documents/account-document.ts";
import { isoTime } from "#common/documents/answer-values.ts";
import { accountChangeDetails } from "#common/words/account-change.ts";
import { type JsonObject, settingsBody } from "#kit/base/json.ts";
import type { Account } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { maxRequestsPerMinute } from "../../auth/limits.ts";
import { ConfigError } from "../env.ts";
import { wholeNumber, withExamples } from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { printFacts, printJson } from "./output.ts";
import type { Cli } from "./program.ts";

interface SetOptions {
  name?: string;
  note?: string;
  rate?: number | "default";
}

export function setCommand(account: Command, cli: Cli): void {
  withExamples(
    account
      .command("set <account>")
      .description("change an account; what is not named stays")
      .option("--name <name>", "what people call it")
      .option("--note <text>", "for operators alone; or none")
      .option(
        "--rate <number>",
        "requests a minute of all its keys together, and of each at most; or default",
        rateOrDefault,
      ),
    'account set acct_… --name "Team A" --note "pays by invoice"',
    "account set acct_… --rate 600",
    "account set acct_… --note none --rate default",
  ).action((accountId: string, options: SetOptions) => set(cli, accountId, options));
  withExamples(
    account.command("show <account>").description("an account's name, state, notes and settings"),
    "account show acct_…",
  ).action((accountId: string) => show(cli, accountId));
}

async function set(cli: Cli, accountId: string, options: SetOptions): Promise<void> {
  const { name, note, rate } = options;
  const changes: JsonObject = {
    ...(name === undefined ? {} : { name }),
    ...(note === undefined ? {} : { notes: note === "none" ? null : note }),
    ...(rate === undefined ? {} : { requestsPerMinute: rate === "default" ? null : rate }),
  };
  if (Object.keys(changes).length === 0) throw new ConfigError("name what to change");
  const { account } = await auditedByCli(
    cli,
    { action: "account.update", accountId, details: accountChangeDetails(changes) },
    () => cli.peers().auth.updateAccount({ accountId, body: settingsBody(changes) }),
  );
  if (cli.json) return print(cli, account);
  cli.out(`${accountId} is changed.\n`);
}

async function show(cli: Cli, accountId: string): Promise<void> {
  const { account } = await cli.peers().auth.getAccount({ accountId });
  print(cli, account);
}

function print(cli: Cli, account: Account | undefined): void {
  if (!account) throw new Error("auth answered no account and did not refuse");
  const { accountId, name, notes, requestsPerMinute, rateIsSet } = account;
  if (cli.json) printJson(cli, { account: { ...printedAccount(account), notes } });
  else
    printFacts(cli, [
      ["account", accountId],
      ["name", name],
      ["state", accountState(account)],
      ["made", isoTime(account.createTime)],
      ["rate", `${requestsPerMinute} requests a minute${rateIsSet ? "" : " (default)"}`],
      ["notes", notes || "none"],
    ]);
}

function rateOrDefault(value: string): number | "default" {
  return value === "default" ? value : wholeNumber(1, maxRequestsPerMinute)(value);
}
