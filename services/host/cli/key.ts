// Adds the commands `genmesh key …`, by which an operator makes, rotates, deletes and lists the keys of an account.
// `key-update.ts` changes one.

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { isoTime } from "#common/documents/answer-values.ts";
import { printedKey } from "#common/documents/key-document.ts";
import { limitResetWord } from "#common/words/key-limits.ts";
import { scopeName } from "#common/words/scopes.ts";
import { settingsBody } from "#kit/base/settings-body.ts";
import type { ApiKey } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { KeyLimitReset, Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { ConfigError } from "../env.ts";
import {
  collect,
  limitReset,
  limitResets,
  moneyOption,
  scope,
  time,
  wholeNumber,
  withExamples,
} from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { explain } from "./explain.ts";
import { updateCommand } from "./key-update.ts";
import { dollars, printFacts, printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";
import { openSecretFile, type SecretFileOption, secretFileOption } from "./secret-file-option.ts";

/** Longest grace of a rotation in seconds (30 days). */
const maxGraceSeconds = 2_592_000;

export function keyCommands(program: Command, cli: Cli): void {
  const key = withExamples(
    program.command("key").description("API keys; a secret is shown once"),
    "key create acct_… --scope text --scope models",
    "key rotate key_… --grace 0",
  );
  createCommand(key, cli);
  updateCommand(key, cli);
  const rotating = key
    .command("rotate <key>")
    .description("give a key a new secret; the former stays valid for the grace time")
    .option("--grace <seconds>", "0 after a leak; default 86400", wholeNumber(0, maxGraceSeconds));
  withExamples(
    secretFileOption(rotating),
    "key rotate key_…",
    "key rotate key_… --grace 0 --secret-file key.txt",
  ).action((keyId: string, options: RotateOptions) => rotate(cli, keyId, options));
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
  const create = key
    .command("create <account>")
    .description("add a key to an account")
    .option(
      "--scope <scope>",
      "route family, repeatable; none given: all but keys, webhooks, usage:read-all and jobs:read-all",
      scope,
    )
    .option("--name <name>", "what people call it")
    .option("--model <model>", "model that it may use, repeatable; none given: all", collect)
    .option("--expires-at <time>", "ISO 8601", time);
  moneyOption(create, "limit-usd", { words: "what it may spend in the time of --limit-reset" });
  create.option("--limit-reset <when>", `${limitResets}; default monthly`, limitReset);
  moneyOption(create, "monthly-usd", { words: "the same as --limit-usd, monthly" });
  create
    .option("--webhook-url <url>", "told of its alerts and its jobs' ends")
    .option("--requests-per-minute <n>", "rate limit", wholeNumber(1, 1_000_000));
  withExamples(
    secretFileOption(create),
    "key create acct_…",
    "key create acct_… --scope text --secret-file key.txt",
    "key create acct_… --name owner --scope keys --scope text --scope models --scope billing",
    "key create acct_… --scope text --scope models --expires-at 2027-01-01T00:00:00Z",
    "key create acct_… --model chat-mini --monthly-usd 1.00 --requests-per-minute 60",
    "key create acct_… --limit-usd 0.50 --limit-reset daily",
  ).action((accountId: string, options: CreateOptions) => createKey(cli, accountId, options));
}

interface RotateOptions extends SecretFileOption {
  grace?: number;
}

interface CreateOptions extends SecretFileOption {
  name?: string;
  scope?: Scope[];
  model?: string[];
  expiresAt?: number;
  monthlyUsd?: bigint;
  monthlyUsdMicros?: bigint;
  limitUsd?: bigint;
  limitUsdMicros?: bigint;
  limitReset?: KeyLimitReset;
  webhookUrl?: string;
  requestsPerMinute?: number;
}

async function createKey(cli: Cli, accountId: string, options: CreateOptions): Promise<void> {
  const monthly = options.monthlyUsd ?? options.monthlyUsdMicros;
  const limit = options.limitUsd ?? options.limitUsdMicros ?? monthly;
  const { limitReset } = options;
  if (monthly !== undefined && (monthly !== limit || limitReset !== undefined))
    throw new ConfigError(
      "--monthly-usd stands for --limit-usd with --limit-reset monthly: name one of them",
    );
  if (options.model) await checkModels(cli, options.model);
  const { name, scope, model, expiresAt, requestsPerMinute, webhookUrl } = options;
  const wanted = {
    ...(name ? { name } : {}),
    ...(scope ? { scopes: scope.map(scopeName) } : {}),
    ...(model ? { models: model } : {}),
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
    ...(limit === undefined ? {} : { limitUsdMicros: Number(limit) }),
    ...(limit === undefined || limitReset === undefined
      ? {}
      : { limit_reset: limitResetWord(limitReset) }),
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(webhookUrl ? { webhookUrl } : {}),
  };
  const body = settingsBody(wanted);
  await using file = await openSecretFile(options);
  const { key, secret } = await auditedByCli(
    cli,
    { action: "key.create", accountId },
    () => cli.peers().auth.addKey({ accountId, body }),
    (made) => ({ target: made.key?.keyId }),
  );
  await file?.keep(secret);
  showSecret(cli, { keyId: key?.keyId ?? "", secret, ...options });
}

/** A key for an unknown model would be useless, and its owner would not notice why. */
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

async function rotate(cli: Cli, keyId: string, options: RotateOptions): Promise<void> {
  const { grace: graceSeconds } = options;
  await using file = await openSecretFile(options);
  const wanted = { keyId, ...(graceSeconds === undefined ? {} : { graceSeconds }) };
  const { key, secret } = await auditedByCli(
    cli,
    { action: "key.rotate", target: keyId },
    () => cli.peers().auth.rotateKey(wanted),
    (made) => ({ accountId: made.key?.accountId }),
  );
  await file?.keep(secret);
  const formerEnds = key?.formerSecretEndTime;
  showSecret(cli, { keyId: key?.keyId ?? keyId, secret, formerEnds, ...options });
}

async function revoke(cli: Cli, keyId: string): Promise<void> {
  const { key } = await auditedByCli(
    cli,
    { action: "key.revoke", target: keyId },
    () => cli.peers().auth.revokeKey({ keyId }),
    (made) => ({ accountId: made.key?.accountId }),
  );
  if (cli.json) return printJson(cli, { key: key && printedKey(key) });
  cli.out(`${keyId} is revoked.\n`);
}

interface ShownSecret extends SecretFileOption {
  keyId: string;
  secret: string;
  formerEnds?: Timestamp | undefined;
}

/** The secret itself, or the file that it was written to. */
function showSecret(cli: Cli, { keyId, secret, secretFile, formerEnds }: ShownSecret): void {
  const formerValidUntil = formerEnds && isoTime(formerEnds);
  if (cli.json) {
    const shown = secretFile === undefined ? { apiKey: secret } : { secretFile };
    printJson(cli, { keyId, ...shown, ...(formerValidUntil ? { formerValidUntil } : {}) });
    return;
  }
  printFacts(cli, [
    ["keyId", keyId],
    secretFile === undefined ? ["apiKey", secret] : ["secret in", secretFile],
    ...(formerValidUntil
      ? [["former secret valid until", formerValidUntil] as [string, string]]
      : []),
  ]);
}

async function list(cli: Cli, accountId: string): Promise<void> {
  const { keys } = await cli.peers().auth.listKeys({ accountId });
  if (cli.json) return printJson(cli, { keys: keys.map(printedKey) });
  printTable(
    cli,
    [
      "key",
      "name",
      "ends in",
      "last used",
      "scopes",
      "models",
      "limit (a month's, if not said)",
      "per minute",
      "expires",
      "state",
    ],
    keys.map((key) => {
      const one = printedKey(key);
      return [
        one.keyId,
        one.name || "–",
        one.secretHint,
        one.lastUsedAt ?? "–",
        one.scopes.join(",") || "all",
        one.allowedModels.join(",") || "all",
        limitCell(key),
        String(one.requestsPerMinute),
        one.expiresAt ?? "never",
        one.revokedAt ? "revoked" : one.disabled ? "disabled" : "active",
      ];
    }),
    "no keys",
  );
}

/** A key's limit in a table. */
function limitCell({ monthlyUsdMicrosLimit: limit, limitReset }: ApiKey): string {
  if (limit === undefined) return "none";
  const reset = limitResetWord(limitReset);
  return reset === "monthly" ? dollars(limit) : `${dollars(limit)} ${reset ?? "for ever"}`;
}
