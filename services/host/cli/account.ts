// Adds the commands `genmesh account …`, by which an operator makes accounts, adds funds, refunds, suspends, closes and lists.
// Alerts and taking back are in files of their own.

import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { driveClosing } from "#common/agreements/account-closing.ts";
import type { Peers } from "#common/agreements/peers.ts";
import { accountState, printedAccount } from "#common/documents/account-document.ts";
import { isoTime, unitName } from "#common/documents/answer-values.ts";
import { randomIds } from "#kit/base/ids.ts";
import { systemClock } from "#kit/time/clock.ts";
import type { Account } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { makeSecret } from "../../auth/key.ts";
import { alertsCommand } from "./account-alerts.ts";
import { balance, balances } from "./account-balance.ts";
import { setCommand } from "./account-set.ts";
import { takeBackCommand } from "./account-take-back.ts";
import {
  amount,
  moneyOption,
  operationId,
  type Sum,
  scope,
  sumIn,
  sumOption,
  unit,
  wholeNumber,
  withExamples,
} from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { explain } from "./explain.ts";
import { printFacts, printJson, printTable, sumWords } from "./output.ts";
import type { Cli } from "./program.ts";
import { openSecretFile, type SecretFileOption, secretFileOption } from "./secret-file-option.ts";

export function accountCommands(program: Command, cli: Cli): void {
  const account = withExamples(
    program.command("account").description("accounts and their funds"),
    'account create --name "Team A" --usd 5.00 --credits 1000',
    "account balance acct_…",
  );
  createCommand(account, cli);
  setCommand(account, cli);
  alertsCommand(account, cli);
  topUpCommand(account, cli);
  refundCommand(account, cli);
  takeBackCommand(account, cli);
  stateCommand(
    account,
    cli,
    "suspend",
    "refuse everything but reading; what runs ends and is charged",
  );
  stateCommand(account, cli, "resume", "let a suspended account work again");
  withExamples(
    account
      .command("close <account>")
      .description(
        "end an account for good: its keys, names, prompts and files go, the ledger stays",
      )
      .requiredOption("--confirm <account>", "the account's id once more"),
    "account close acct_… --confirm acct_…",
  ).action((accountId: string, { confirm }: { confirm: string }) => close(cli, accountId, confirm));
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
  const command = account
    .command("create")
    .description("make an account with a first key, which is shown once")
    .requiredOption("--name <name>", "what people call it");
  withExamples(
    secretFileOption(moneyOption(command, "usd", { words: "opening balance in US dollars" }))
      .option("--credits <credits>", "opening credits", amount)
      .option("--api-key <key>", "the first key's secret; made if not given")
      .option(
        "--scope <scope>",
        "what the first key may use, repeatable; none given: all but keys, webhooks, usage:read-all and jobs:read-all",
        scope,
      )
      .option("--operation-id <id>", "the same id makes one account", operationId),
    'account create --name "Team A"',
    'account create --name "Team A" --usd 5.00 --credits 1000 --operation-id team-a',
  ).action((options: CreateOptions) => create(cli, options));
}

function topUpCommand(account: Command, cli: Cli): void {
  const command = account.command("top-up <account>").description("add funds");
  withExamples(
    moneyOption(command, "usd", { words: "US dollars" })
      .option("--credits <credits>", "credits", amount)
      .option("--operation-id <id>", "the same id adds once", operationId),
    "account top-up acct_… --usd 1.00",
    "account top-up acct_… --credits 500 --operation-id invoice-17",
  ).action((accountId: string, options: TopUpOptions) => topUp(cli, accountId, options));
}

function refundCommand(account: Command, cli: Cli): void {
  const command = account
    .command("refund <account>")
    .description("give a charge back, at most once; it counts as if the charge had been less")
    .requiredOption(
      "--entry <number>",
      "the number of the entry that charged",
      wholeNumber(1, Number.MAX_SAFE_INTEGER),
    )
    .option("--unit <unit>", "the wallet: usd_micros or credits; default: usd_micros", unit);
  withExamples(
    sumOption(command, "a part of the charge (default: all of it)").option(
      "--operation-id <id>",
      "a repeat with the same id changes nothing",
      operationId,
    ),
    "account refund acct_… --entry 17",
    "account refund acct_… --entry 17 --usd 0.25",
    "account refund acct_… --unit credits --entry 4 --amount 10 --operation-id ticket-99",
  ).action((accountId: string, options: RefundOptions) => refund(cli, accountId, options));
}

function stateCommand(
  account: Command,
  cli: Cli,
  name: "suspend" | "resume",
  description: string,
): void {
  withExamples(
    account.command(`${name} <account>`).description(`${description}, within a second everywhere`),
    `account ${name} acct_…`,
  ).action((accountId: string) => setState(cli, accountId, name === "suspend"));
}

async function setState(cli: Cli, accountId: string, suspended: boolean): Promise<void> {
  const action = `account.${suspended ? "suspend" : "resume"}`;
  const { account } = await auditedByCli(cli, { action, accountId }, () =>
    cli.peers().auth.setAccountState({ accountId, suspended }),
  );
  if (!account) throw new Error("auth answered no account and did not refuse");
  const state = accountState(account);
  const { suspendedAt } = printedAccount(account);
  if (cli.json) return printJson(cli, { accountId, state, suspendedAt });
  cli.out(`${accountId} is ${state}.\n`);
}

/**
 * Closes an account. Its data are deleted at once, except for those of running requests and jobs. When these have ended, the gateways
 * complete the closing.
 */
async function close(cli: Cli, accountId: string, confirm: string): Promise<void> {
  if (confirm !== accountId) throw new Error("--confirm must be the id of the account");
  const peers = cli.peers();
  const { account } = await auditedByCli(cli, { action: "account.close", accountId }, () =>
    peers.auth.closeAccount({ accountId }),
  );
  const { keys } = await peers.auth.listKeys({ accountId });
  const keyIds = keys.map(({ keyId }) => keyId);
  await driveClosing({ account, keyIds }, peers, systemClock);
  const state = account?.closeTime ? "closed" : "closing";
  if (cli.json) return printJson(cli, { accountId, state });
  cli.out(
    state === "closed"
      ? `${accountId} is closed.\n`
      : `${accountId} is being closed: its keys have ended and what it left is erased; what still runs ends first.\n`,
  );
}

/** The amount to be added to each wallet. An absent one adds nothing. Dollars are given in one of two ways, and are micros in both. */
interface Funds {
  usd?: bigint;
  usdMicros?: bigint;
  credits?: bigint;
}

/** The amounts that are added, for the audit log. */
function figuresOf({ usd = 0n, usdMicros = usd, credits = 0n }: Funds) {
  return { usdMicros: `${usdMicros}`, credits: `${credits}` };
}

interface TopUpOptions extends Funds {
  operationId?: string;
}

interface RefundOptions extends Sum {
  entry: number;
  unit?: Unit;
  operationId?: string;
}

interface CreateOptions extends TopUpOptions, SecretFileOption {
  name: string;
  apiKey?: string;
  scope?: Scope[];
}

async function create(cli: Cli, options: CreateOptions): Promise<void> {
  const peers = cli.peers();
  const id = options.operationId ?? randomUUID();
  const { secretFile } = options;
  await using file = await openSecretFile(options);
  const made = await auditedByCli(
    cli,
    { action: "account.create", details: { ...figuresOf(options), operationId: id } },
    () =>
      peers.auth.createAccount({
        name: options.name,
        // A repeat after a lost answer must bring the secret, or its answer lacks it. An operator's own operation id may have been used
        // before with another secret, so none is made for it here.
        apiKey: options.apiKey ?? (options.operationId ? "" : makeSecret(randomIds)),
        operationId: id,
        scopes: options.scope ?? [],
      }),
    ({ account }) => ({ accountId: account?.accountId }),
  );
  const accountId = made.account?.accountId ?? "";
  await file?.keep(made.secret);
  // The grants' ids are derived from the operation's id, so that a repeat after a crash completes it and adds nothing twice.
  const funding = await grant(peers, accountId, options, `create:${id}`).then(
    () => undefined,
    (error: unknown) => error,
  );
  showAccount(cli, {
    accountId,
    keyId: made.key?.keyId ?? "",
    ...(secretFile === undefined || made.secret === "" ? { apiKey: made.secret } : { secretFile }),
    replayed: made.replayed,
  });
  // A failed grant is reported only now. The secret is shown once, and must not be lost with the error.
  if (funding !== undefined) {
    throw new Error(
      `the account was made, but not all of its funds were added; repeat the call with --operation-id ${id}: ${explain(funding)}`,
    );
  }
}

function showAccount(
  cli: Cli,
  result: {
    accountId: string;
    keyId: string;
    apiKey?: string;
    replayed: boolean;
  } & SecretFileOption,
): void {
  if (cli.json) {
    printJson(cli, result);
    return;
  }
  printFacts(cli, [
    ["accountId", result.accountId],
    ["keyId", result.keyId],
    [
      result.secretFile === undefined ? "apiKey" : "secret in",
      result.secretFile ||
        result.apiKey ||
        `(shown when the account was made; genmesh key rotate makes a new one)`,
    ],
  ]);
}

async function topUp(cli: Cli, accountId: string, options: TopUpOptions): Promise<void> {
  if (!options.usd && !options.usdMicros && !options.credits) {
    throw new Error("nothing to add: give --usd or --credits, above 0");
  }
  const peers = cli.peers();
  const { account } = await peers.auth.getAccount({ accountId });
  if (account?.closingTime) throw new Error(`${accountId} is closed, or being closed`);
  const id = options.operationId ?? randomUUID();
  const details = { ...figuresOf(options), operationId: id };
  const replayed = await auditedByCli(cli, { action: "account.top_up", accountId, details }, () =>
    grant(peers, accountId, options, id),
  );
  if (cli.json)
    return printJson(cli, { accountId, ...(await balances(peers, accountId)), replayed });
  if (replayed) cli.out("This operation was made before; nothing was added.\n");
  await balance(cli, accountId);
}

async function refund(cli: Cli, accountId: string, options: RefundOptions): Promise<void> {
  const { entry, unit = Unit.USD_MICROS, operationId = randomUUID() } = options;
  const amount = sumIn(unit, options);
  const peers = cli.peers();
  await peers.auth.getAccount({ accountId });
  const name = unitName(unit);
  const details = { unit: name, amount: amount === undefined ? null : `${amount}`, operationId };
  const { refundedAmount, entryNumber, replayed } = await auditedByCli(
    cli,
    { action: "account.refund", accountId, target: `entry ${entry}`, details },
    () =>
      peers.billing.refund({
        ...{ accountId, unit, operationId },
        entryNumber: BigInt(entry),
        ...(amount === undefined ? {} : { amount }),
      }),
  );
  if (cli.json) {
    const refund = { accountId, unit: name, entry, refundEntry: entryNumber };
    return printJson(cli, { ...refund, amount: refundedAmount, replayed });
  }
  if (replayed) cli.out("This operation was made before; nothing was given back.\n");
  else cli.out(`${sumWords(unit, refundedAmount)} of entry ${entry} were given back.\n`);
  await balance(cli, accountId);
}

/** Adds the amounts that the options name. Answers true where every grant was already made before. */
async function grant(peers: Peers, accountId: string, funds: Funds, id: string): Promise<boolean> {
  const parts = [
    [Unit.USD_MICROS, funds.usd ?? funds.usdMicros ?? 0n],
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

async function list(cli: Cli): Promise<void> {
  const peers = cli.peers();
  const accounts: Account[] = [];
  let pageToken = "";
  do {
    const page = await peers.auth.listAccounts({ pageSize: 1000, pageToken });
    accounts.push(...page.accounts);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  if (cli.json) return printJson(cli, { accounts: accounts.map(printedAccount) });
  printTable(
    cli,
    ["account", "name", "made", "state"],
    accounts.map((one) => [one.accountId, one.name, isoTime(one.createTime), accountState(one)]),
    "no accounts",
  );
}
