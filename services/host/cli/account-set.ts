import type { Command } from "commander";
import { printedAccount } from "#common/documents/account-document.ts";
import { accountChangeDetails } from "#common/words/account-change.ts";
import { type JsonObject, settingsBody } from "#kit/base/json.ts";
import { maxRequestsPerMinute } from "../../auth/limits.ts";
import { ConfigError } from "../env.ts";
import { wholeNumber, withExamples } from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { printJson } from "./output.ts";
import type { Cli } from "./program.ts";

interface SetOptions {
  rate?: number | "default";
}

export function setCommand(account: Command, cli: Cli): void {
  withExamples(
    account
      .command("set <account>")
      .description("change an account; what is not named stays")
      .option(
        "--rate <number>",
        "requests a minute of all its keys together, and of each at most; or default",
        rateOrDefault,
      ),
    "account set acct_… --rate 600",
    "account set acct_… --rate default",
  ).action((accountId: string, options: SetOptions) => set(cli, accountId, options));
}

async function set(cli: Cli, accountId: string, { rate }: SetOptions): Promise<void> {
  const changes: JsonObject = {
    ...(rate === undefined ? {} : { requestsPerMinute: rate === "default" ? null : rate }),
  };
  if (Object.keys(changes).length === 0) throw new ConfigError("name what to change");
  const { account } = await auditedByCli(
    cli,
    { action: "account.update", accountId, details: accountChangeDetails(changes) },
    () => cli.peers().auth.updateAccount({ accountId, body: settingsBody(changes) }),
  );
  if (!account) throw new Error("auth answered no account and did not refuse");
  if (cli.json) return printJson(cli, { account: printedAccount(account) });
  cli.out(`${accountId} is changed.\n`);
}

function rateOrDefault(value: string): number | "default" {
  return value === "default" ? value : wholeNumber(1, maxRequestsPerMinute)(value);
}
