// Adds `genmesh key update`. It is split off `key.ts`, because a change reaches auth and billing.

import type { Command } from "commander";
import { printedKey } from "#common/documents/key-document.ts";
import { limitResetWord } from "#common/words/key-limits.ts";
import { settingsBody } from "#kit/base/settings-body.ts";
import type { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";
import { ConfigError } from "../env.ts";
import {
  type AmountOrNone,
  limitReset,
  limitResets,
  moneyOption,
  numberOrNull,
  withExamples,
} from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { printJson } from "./output.ts";
import type { Cli } from "./program.ts";

interface UpdateOptions {
  name?: string;
  disable?: true;
  enable?: true;
  limitUsd?: AmountOrNone;
  limitUsdMicros?: AmountOrNone;
  limitReset?: KeyLimitReset;
  webhookUrl?: string;
  lowBalanceUsd?: AmountOrNone;
  lowBalanceUsdMicros?: AmountOrNone;
}

export function updateCommand(key: Command, cli: Cli): void {
  const command = key
    .command("update <key>")
    .description("change a key; what is not named stays")
    .option("--name <name>", "what people call it")
    .option("--disable", "it is refused until it is enabled again")
    .option("--enable", "it may be used again");
  moneyOption(command, "limit-usd", { words: "its limit, or none", orNone: true });
  command
    .option("--limit-reset <when>", limitResets, limitReset)
    .option("--webhook-url <url>", "told of its alerts and its jobs' ends; or none");
  moneyOption(command, "low-balance-usd", {
    words: "available funds below which the webhook is told; or none",
    orNone: true,
  });
  withExamples(
    command,
    "key update key_… --limit-usd 0.50 --limit-reset daily",
    "key update key_… --limit-usd none",
    "key update key_… --webhook-url https://example.com/hooks --low-balance-usd 5.00",
  ).action((keyId: string, options: UpdateOptions) => update(cli, keyId, options));
}

async function update(cli: Cli, keyId: string, options: UpdateOptions): Promise<void> {
  const { disable, enable, name, webhookUrl } = options;
  const { limitUsd, limitUsdMicros = limitUsd } = options;
  const { lowBalanceUsd, lowBalanceUsdMicros = lowBalanceUsd } = options;
  if (disable && enable) throw new ConfigError("--disable and --enable exclude each other");
  const changes = {
    ...(name === undefined ? {} : { name }),
    ...(disable || enable ? { disabled: disable === true } : {}),
    ...(limitUsdMicros === undefined ? {} : { limitUsdMicros: numberOrNull(limitUsdMicros) }),
    ...(options.limitReset === undefined
      ? {}
      : { limit_reset: limitResetWord(options.limitReset) }),
    ...(webhookUrl === undefined ? {} : { webhookUrl: webhookUrl === "none" ? null : webhookUrl }),
    ...(lowBalanceUsdMicros === undefined
      ? {}
      : { lowBalanceUsdMicros: numberOrNull(lowBalanceUsdMicros) }),
  };
  if (Object.keys(changes).length === 0) throw new ConfigError("name what to change");
  const { key } = await auditedByCli(
    cli,
    { action: "key.update", target: keyId, details: { changed: Object.keys(changes).join(", ") } },
    () => change(cli, keyId, changes),
    (done) => ({ accountId: done.key?.accountId }),
  );
  if (cli.json) return printJson(cli, { key: key && printedKey(key) });
  cli.out(`${keyId} is changed.\n`);
}

async function change(cli: Cli, keyId: string, changes: Record<string, unknown>) {
  const body = settingsBody(changes);
  const done = await cli.peers().auth.updateKey({ keyId, body });
  const accountId = done.key?.accountId ?? "";
  // Where this fails, repeating the command has the same result.
  if (done.lowBalance) {
    const { usdMicros } = done.lowBalance;
    const low = usdMicros === undefined ? {} : { usdMicros };
    await cli.peers().billing.setKeyLowBalance({ accountId, keyId, ...low });
  }
  return done;
}
