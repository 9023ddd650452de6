import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import type { Peers } from "#kit/peers.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { amount } from "./arguments.ts";
import { showTime } from "./key.ts";
import { dollars, printFacts, printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

/** `genmesh account …` */
export function accountCommands(program: Command, cli: Cli): void {
  const account = program.command("account").description("accounts and their funds");
  account
    .command("create")
    .description("make an account with a first key, which is shown once")
    .requiredOption("--name <name>", "what people call it")
    .option("--usd-micros <micros>", "opening balance in millionths of a US dollar", amount, 0n)
    .option("--credits <credits>", "opening credits", amount, 0n)
    .option("--api-key <key>", "the first key's secret; made if not given")
    .option("--operation-id <id>", "the same id makes one account")
    .addHelpText(
      "after",
      '\nExample:\n  $ npx genmesh account create --name "Team A" --usd-micros 5000000 --credits 1000',
    )
    .action((options: CreateOptions) => create(cli, options));
  account
    .command("top-up <account>")
    .description("add funds")
    .option("--usd-micros <micros>", "millionths of a US dollar", amount, 0n)
    .option("--credits <credits>", "credits", amount, 0n)
    .option("--operation-id <id>", "the same id adds once")
    .addHelpText(
      "after",
      "\nExample:\n  $ npx genmesh account top-up acct_… --usd-micros 1000000 --operation-id invoice-17",
    )
    .action((accountId: string, options: Funds & { operationId?: string }) =>
      topUp(cli, accountId, options),
    );
  account
    .command("list")
    .description("all accounts")
    .action(() => list(cli));
  account
    .command("balance <account>")
    .description("what an account has, holds and has spent")
    .action((accountId: string) => balance(cli, accountId));
}

interface Funds {
  usdMicros: bigint;
  credits: bigint;
}

interface CreateOptions extends Funds {
  name: string;
  apiKey?: string;
  operationId?: string;
}

async function create(cli: Cli, options: CreateOptions): Promise<void> {
  const peers = cli.peers();
  const operationId = options.operationId ?? randomUUID();
  const made = await peers.auth.createAccount({
    name: options.name,
    apiKey: options.apiKey ?? "",
    operationId,
  });
  const accountId = made.account?.accountId ?? "";
  // The grants' ids follow from the operation's, so that a repeat after a crash completes it and adds nothing twice.
  await grant(peers, accountId, options, `create:${operationId}`);
  const result = { accountId, keyId: made.key?.keyId ?? "", apiKey: made.secret };
  if (cli.json) return printJson(cli, { ...result, replayed: made.replayed });
  printFacts(cli, [
    ["accountId", result.accountId],
    ["keyId", result.keyId],
    ["apiKey", result.apiKey || "(shown when the account was made)"],
  ]);
}

async function topUp(
  cli: Cli,
  accountId: string,
  options: Funds & { operationId?: string },
): Promise<void> {
  if (options.usdMicros === 0n && options.credits === 0n) {
    throw new Error("nothing to add: give --usd-micros or --credits");
  }
  const peers = cli.peers();
  await peers.auth.getAccount({ accountId });
  const replayed = await grant(peers, accountId, options, options.operationId ?? randomUUID());
  if (cli.json)
    return printJson(cli, { accountId, ...(await balances(peers, accountId)), replayed });
  if (replayed) cli.out("This operation was made before; nothing was added.\n");
  await balance(cli, accountId);
}

/** Adds what is asked for; true where every part was known already. */
async function grant(
  peers: Peers,
  accountId: string,
  funds: Funds,
  operationId: string,
): Promise<boolean> {
  const parts: [Unit, bigint][] = [
    [Unit.USD_MICROS, funds.usdMicros],
    [Unit.CREDITS, funds.credits],
  ];
  let replayed = true;
  for (const [unit, sum] of parts) {
    if (sum === 0n) continue;
    const answer = await peers.billing.grant({ accountId, unit, amount: sum, operationId });
    replayed = replayed && answer.replayed;
  }
  return replayed;
}

async function balances(peers: Peers, accountId: string) {
  const { usdMicros, credits } = await peers.billing.getBalance({ accountId });
  const plain = (wallet: typeof usdMicros) => ({
    available: wallet?.available ?? 0n,
    reserved: wallet?.reserved ?? 0n,
    spendable: wallet?.spendable ?? 0n,
    monthSpent: wallet?.monthSpent ?? 0n,
  });
  return { usdMicros: plain(usdMicros), credits: plain(credits) };
}

async function balance(cli: Cli, accountId: string): Promise<void> {
  const { usdMicros, credits } = await balances(cli.peers(), accountId);
  if (cli.json) return printJson(cli, { accountId, usdMicros, credits });
  const row = (name: string, wallet: typeof usdMicros, show: (sum: bigint) => string) => [
    name,
    show(wallet.available),
    show(wallet.reserved),
    show(wallet.spendable),
    show(wallet.monthSpent),
  ];
  printTable(
    cli,
    ["wallet", "available", "reserved", "spendable", "this month"],
    [row("US dollars", usdMicros, dollars), row("credits", credits, String)],
    "",
  );
}

async function list(cli: Cli): Promise<void> {
  const peers = cli.peers();
  const accounts: { accountId: string; name: string; createdAt: string }[] = [];
  let pageToken = "";
  do {
    const page = await peers.auth.listAccounts({ pageSize: 1000, pageToken });
    for (const one of page.accounts) {
      accounts.push({
        accountId: one.accountId,
        name: one.name,
        createdAt: showTime(one.createTime),
      });
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  if (cli.json) return printJson(cli, { accounts });
  printTable(
    cli,
    ["account", "name", "made"],
    accounts.map((one) => [one.accountId, one.name, one.createdAt]),
    "no accounts",
  );
}
