import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import type { ApiKey } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { ConfigError } from "../env.ts";
import { amount, collect, scope, scopeName, time, wholeNumber } from "./arguments.ts";
import { explain } from "./explain.ts";
import { withExamples } from "./help.ts";
import { dollars, printFacts, printJson, printTable, showTime } from "./output.ts";
import type { Cli } from "./program.ts";

/** Longest grace of a rotation, seconds (30 days). */
const maxGraceSeconds = 2_592_000;

/** `genmesh key …` */
export function keyCommands(program: Command, cli: Cli): void {
  const key = withExamples(
    program.command("key").description("API keys; a secret is shown once"),
    "key create acct_… --scope text --scope models",
    "key rotate key_… --grace 0",
  );
  createCommand(key, cli);
  withExamples(
    key
      .command("rotate <key>")
      .description("give a key a new secret; the former stays valid for the grace time")
      .option(
        "--grace <seconds>",
        "0 after a leak; default 86400",
        wholeNumber(0, maxGraceSeconds),
      ),
    "key rotate key_…",
    "key rotate key_… --grace 0",
  ).action((keyId: string, options: { grace?: number }) => rotate(cli, keyId, options.grace));
  withExamples(
    key.command("revoke <key>").description("end a key, within a second everywhere"),
    "key revoke key_…",
  ).action((keyId: string) => revoke(cli, keyId));
  withExamples(
    key.command("list <account>").description("an account's keys"),
    "key list acct_…",
  ).action((accountId: string) => list(cli, accountId));
}

function createCommand(key: Command, cli: Cli): void {
  withExamples(
    key
      .command("create <account>")
      .description("add a key to an account")
      .option(
        "--scope <scope>",
        "route family, repeatable; none given: all but keys, usage:read-all and jobs:read-all",
        scope,
      )
      .option("--model <model>", "model that it may use, repeatable; none given: all", collect)
      .option("--expires-at <time>", "ISO 8601", time)
      .option("--monthly-usd-micros <micros>", "limit of a calendar month (UTC)", amount)
      .option("--requests-per-minute <n>", "rate limit", wholeNumber(1, 1_000_000)),
    "key create acct_…",
    "key create acct_… --scope text --scope models --expires-at 2027-01-01T00:00:00Z",
    "key create acct_… --model chat-mini --monthly-usd-micros 1000000 --requests-per-minute 60",
  ).action((accountId: string, options: CreateOptions) => create(cli, accountId, options));
}

interface CreateOptions {
  scope?: Scope[];
  model?: string[];
  expiresAt?: number;
  monthlyUsdMicros?: bigint;
  requestsPerMinute?: number;
}

async function create(cli: Cli, accountId: string, options: CreateOptions): Promise<void> {
  if (options.model) await checkModels(cli, options.model);
  const { key, secret } = await cli.peers().auth.createKey({
    accountId,
    scopes: options.scope ?? [],
    allowedModels: options.model ?? [],
    ...(options.expiresAt === undefined ? {} : { expireTime: timestampFromMs(options.expiresAt) }),
    ...(options.monthlyUsdMicros === undefined
      ? {}
      : { monthlyUsdMicrosLimit: options.monthlyUsdMicros }),
    requestsPerMinute: options.requestsPerMinute ?? 0,
  });
  showSecret(cli, key?.keyId ?? "", secret);
}

/** A key for a model that does not exist could use nothing, and nobody would be told. */
async function checkModels(cli: Cli, wanted: readonly string[]): Promise<void> {
  let known: string[];
  try {
    const { snapshot } = await cli.peers().catalog.getSnapshot({});
    known = (snapshot?.models ?? []).map((model) => model.id);
  } catch (error) {
    cli.err(`genmesh: the models were not checked: ${explain(error)}\n`);
    return;
  }
  const unknown = wanted.filter((id) => !known.includes(id));
  if (unknown.length === 0) return;
  throw new ConfigError(
    `there is no model ${unknown.join(", ")}; the catalog has: ${known.join(", ")}`,
  );
}

async function rotate(cli: Cli, keyId: string, graceSeconds: number | undefined): Promise<void> {
  const { key, secret } = await cli
    .peers()
    .auth.rotateKey({ keyId, ...(graceSeconds === undefined ? {} : { graceSeconds }) });
  showSecret(cli, key?.keyId ?? keyId, secret, key?.formerSecretEndTime);
}

async function revoke(cli: Cli, keyId: string): Promise<void> {
  const { key } = await cli.peers().auth.revokeKey({ keyId });
  if (cli.json) return printJson(cli, { key: key && plain(key) });
  cli.out(`${keyId} is revoked.\n`);
}

function showSecret(cli: Cli, keyId: string, apiKey: string, formerEnds?: Timestamp): void {
  const formerValidUntil = formerEnds && showTime(formerEnds);
  if (cli.json) {
    printJson(cli, { keyId, apiKey, ...(formerValidUntil ? { formerValidUntil } : {}) });
    return;
  }
  printFacts(cli, [
    ["keyId", keyId],
    ["apiKey", apiKey],
    ...(formerValidUntil
      ? [["former secret valid until", formerValidUntil] as [string, string]]
      : []),
  ]);
}

async function list(cli: Cli, accountId: string): Promise<void> {
  const { keys } = await cli.peers().auth.listKeys({ accountId });
  if (cli.json) return printJson(cli, { keys: keys.map(plain) });
  printTable(
    cli,
    ["key", "ends in", "scopes", "models", "monthly limit", "per minute", "expires", "state"],
    keys.map((key) => {
      const one = plain(key);
      return [
        one.keyId,
        one.secretHint,
        one.scopes.join(",") || "all",
        one.allowedModels.join(",") || "all",
        one.monthlyUsdMicros === undefined ? "none" : dollars(one.monthlyUsdMicros),
        String(one.requestsPerMinute),
        one.expiresAt ?? "never",
        one.revokedAt ? "revoked" : "active",
      ];
    }),
    "no keys",
  );
}

function plain(key: ApiKey) {
  return {
    keyId: key.keyId,
    accountId: key.accountId,
    secretHint: key.secretHint,
    scopes: key.scopes.map(scopeName),
    allowedModels: key.allowedModels,
    monthlyUsdMicros: key.monthlyUsdMicrosLimit,
    requestsPerMinute: key.requestsPerMinute,
    createdAt: showTime(key.createTime),
    expiresAt: key.expireTime && showTime(key.expireTime),
    revokedAt: key.revokeTime && showTime(key.revokeTime),
    formerSecretValidUntil: key.formerSecretEndTime && showTime(key.formerSecretEndTime),
  };
}
