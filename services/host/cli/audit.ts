// Adds `genmesh audit`, which lists what operators did, and writes such a line for each act of other commands. The audit of
// wallets is another one: `ledger.ts`.

import { userInfo } from "node:os";
import type { Command } from "commander";
import { printedAction } from "#common/documents/action-document.ts";
import { audited, type DoneAction, type PlannedAction } from "#common/words/operator-actions.ts";
import { randomIds } from "#kit/base/ids.ts";
import { wholeNumber, withExamples } from "./arguments.ts";
import { dollars, printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

export function auditCommands(program: Command, cli: Cli): void {
  const audit = withExamples(
    program.command("audit").description("what operators did"),
    "audit list",
  );
  withExamples(
    audit
      .command("list [account]")
      .description("changes by operators, newest first: who, what, when, and what became of it")
      .option("--limit <number>", "so many lines", wholeNumber(1, 1_000), 100),
    "audit list",
    "audit list acct_… --limit 20 --json",
  ).action((accountId: string | undefined, { limit }: { limit: number }) =>
    list(cli, accountId ?? "", limit),
  );
}

async function list(cli: Cli, accountId: string, pageSize: number): Promise<void> {
  const { actions } = await cli.peers().auth.listActions({ accountId, pageSize });
  const rows = actions.map(printedAction);
  if (cli.json) return printJson(cli, { actions: rows });
  printTable(
    cli,
    ["when", "who", "what", "account", "of", "details", "outcome"],
    rows.map((one) => [
      ...[one.at, one.actor, one.action, one.accountId, one.target, inDollars(one.details)],
      one.reason === "" ? one.outcome : `${one.outcome}: ${one.reason}`,
    ]),
    "no actions",
  );
}

/** An action's details for people, with dollars in place of millionths. */
function inDollars(details: string): string {
  const shown = (name: string, micros: string) => `${name}":"${dollars(BigInt(micros))}"`;
  return details
    .replace(/("(?:u|limitU)sd)Micros":"?(\d+)"?/g, (_, name, micros) => shown(name, micros))
    .replace(/"unit":"usd_micros","amount":"?(\d+)"?/, (_, micros) => shown('"usd', micros));
}

/** Does an action with a line in the audit log, as this machine's user. */
export function auditedByCli<T>(
  cli: Cli,
  planned: PlannedAction,
  work: () => Promise<T>,
  doneOf?: (answer: T) => DoneAction,
): Promise<T> {
  const context = { auth: cli.peers().auth, ids: randomIds, actor: cliActor() };
  return audited(context, planned, work, doneOf);
}

/** The operator of this command, as the audit log names them. */
export function cliActor(): string {
  return `command of ${userName()}`;
}

/** A container may have no name for its user. */
function userName(): string {
  try {
    return userInfo().username.slice(0, 100);
  } catch {
    return "an unnamed user";
  }
}
