import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import type { Peers } from "#kit/peers.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { amount, operationId } from "./arguments.ts";
import { explain } from "./explain.ts";
import { withExamples } from "./help.ts";
import { dollars, printFacts, printJson, printTable, showTime } from "./output.ts";
import type { Cli } from "./program.ts";

/** `genmesh account …` */
export function accountCommands(program: Command, cli: Cli): void {
  const account = withExamples(
    program.command("account").description("accounts and their funds"),
    'account create --name "Team A" --usd-micros 5000000 --credits 1000',
    "account balance acct_…",
  );
  createCommand(account, cli);
  topUpCommand(account, cli);
  withExamples(
    account.command("list").description("all accounts"),
    "account list",
    "account list --json",
  ).action(() => list(cli));
  withExamples(
    account.command("balance <account>").description("what an account has, holds and has spent"),
    "account balance acct_…",
  ).action((accountId: string) => balance(cli, accountId));
}

function createCommand(account: Command, cli: Cli): void {
  withExamples(
    account
      .command("create")
      .description("make an account with a first key, which is shown once")
      .requiredOption("--name <name>", "what people call it")
      .option("--usd-micros <micros>", "opening balance in millionths of a US dollar", amount)
      .option("--credits <credits>", "opening credits", amount)
      .option("--api-key <key>", "the first key's secret; made if not given")
      .option("--operation-id <id>", "the same id makes one account", operationId),
    'account create --name "Team A"',
    'account create --name "Team A" --usd-micros 5000000 --credits 1000 --operation-id team-a',
  ).action((options: CreateOptions) => create(cli, options));
}

function topUpCommand(account: Command, cli: Cli): void {
  withExamples(
    account
      .command("top-up <account>")
      .description("add funds")
      .option("--usd-micros <micros>", "millionths of a US dollar", amount)
      .option("--credits <credits>", "credits", amount)
      .option("--operation-id <id>", "the same id adds once", operationId),
    "account top-up acct_… --usd-micros 1000000",
    "account top-up acct_… --credits 500 --operation-id invoice-17",
  ).action((accountId: string, options: TopUpOptions) => topUp(cli, accountId, options));
}

/** What is to be added to each wallet; absent: nothing. */
interface Funds {
  usdMicros?: bigint;
  credits?: bigint;
}

interface TopUpOptions extends Funds {
  operationId?: string;
}

interface CreateOptions extends TopUpOptions {
  name: string;
  apiKey?: string;
}

async function create(cli: Cli, options: CreateOptions): Promise<void> {
  const peers = cli.peers();
  const id = options.operationId ?? randomUUID();
  const made = await peers.auth.createAccount({
    name: options.name,
    apiKey: options.apiKey ?? "",
    operationId: id,
  });
  const accountId = made.account?.accountId ?? "";
  // The grants' ids follow from the operation's, so that a repeat after a crash completes it and adds nothing twice.
  const funding = await grant(peers, accountId, options, `create:${id}`).then(
    () => undefined,
    (error: unknown) => error,
  );
  showAccount(cli, {
    accountId,
    keyId: made.key?.keyId ?? "",
    apiKey: made.secret,
    replayed: made.replayed,
  });
  // Told only now: the secret is shown once, and must not be lost with the funds.
  if (funding !== undefined) {
    throw new Error(
      `the account was made, but not all of its funds were added; repeat the call with --operation-id ${id}: ${explain(funding)}`,
    );
  }
}

function showAccount(
  cli: Cli,
  result: { accountId: string; keyId: string; apiKey: string; replayed: boolean },
): void {
  if (cli.json) {
    printJson(cli, result);
    return;
  }
  printFacts(cli, [
    ["accountId", result.accountId],
    ["keyId", result.keyId],
    ["apiKey", result.apiKey || "(shown when the account was made)"],
  ]);
}

async function topUp(cli: Cli, accountId: string, options: TopUpOptions): Promise<void> {
  if (!options.usdMicros && !options.credits) {
    throw new Error("nothing to add: give --usd-micros or --credits, above 0");
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
async function grant(peers: Peers, accountId: string, funds: Funds, id: string): Promise<boolean> {
  const parts = [
    [Unit.USD_MICROS, funds.usdMicros ?? 0n],
    [Unit.CREDITS, funds.credits ?? 0n],
  ] as const;
  let replayed = true;
  for (const [unit, sum] of parts) {
    if (sum === 0n) continue;
    const answer = await peers.billing.grant({ accountId, unit, amount: sum, operationId: id });
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
  const peers = cli.peers();
  // Billing answers zeros for an account that it never heard of.
  await peers.auth.getAccount({ accountId });
  const { usdMicros, credits } = await balances(peers, accountId);
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
