// Adds the commands `genmesh webhook …`, which list an account's webhooks and send one again.

import type { Command } from "commander";
import { isoTime } from "#common/documents/answer-values.ts";
import { type Webhook, Webhook_State } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { withExamples } from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

const stateNames = new Map<number, string>([
  [Webhook_State.PENDING, "pending"],
  [Webhook_State.DELIVERED, "delivered"],
  [Webhook_State.FAILED, "failed"],
  [Webhook_State.STOPPED, "stopped"],
]);
/** Webhooks in one listing. It is for people to read, and is no export. */
const listLimit = 100;

export function webhookCommands(program: Command, cli: Cli): void {
  const webhook = withExamples(
    program.command("webhook").description("what jobs tell the addresses of their submissions"),
    "webhook list acct_…",
    "webhook retry evt_…",
  );
  withExamples(
    webhook.command("list <account>").description(`an account's newest ${listLimit} webhooks`),
    "webhook list acct_…",
  ).action((accountId: string) => list(cli, accountId));
  withExamples(
    webhook
      .command("retry <webhook>")
      .description("sends a webhook again, at once and for another 24 hours"),
    "webhook retry evt_…",
  ).action(async (webhookId: string) => {
    const { webhook: due } = await auditedByCli(
      cli,
      { action: "webhook.retry", target: webhookId },
      () => cli.peers().media.retryAccountWebhook({ webhookId }),
      ({ accountId }) => ({ accountId }),
    );
    if (cli.json) printJson(cli, { webhook: due && plain(due) });
    else cli.out(`${webhookId} is due.\n`);
  });
}

async function list(cli: Cli, accountId: string): Promise<void> {
  const { auth, media } = cli.peers();
  // Media knows webhooks, not accounts. For an account that does not exist it answers an empty list.
  await auth.getAccount({ accountId });
  const { webhooks } = await media.listAccountWebhooks({ accountId, pageSize: listLimit });
  if (cli.json) return printJson(cli, { webhooks: webhooks.map(plain) });
  printTable(
    cli,
    ["webhook", "type", "status", "attempts", "answer", "made", "next attempt"],
    webhooks.map((one) => [
      one.webhookId,
      one.type,
      stateNames.get(one.state) ?? "",
      String(one.attempts),
      one.lastStatus === 0 ? one.lastError : String(one.lastStatus),
      isoTime(one.createTime),
      isoTime(one.nextAttemptTime),
    ]),
    "no webhooks",
  );
}

/** Without the address, which may hold a secret of its receiver. The account's own listing shows it. */
function plain(webhook: Webhook) {
  return {
    webhookId: webhook.webhookId,
    type: webhook.type,
    jobId: webhook.jobId,
    status: stateNames.get(webhook.state),
    attempts: webhook.attempts,
    lastStatus: webhook.lastStatus || undefined,
    lastError: webhook.lastError || undefined,
    createdAt: isoTime(webhook.createTime),
    lastAttemptAt: isoTime(webhook.lastAttemptTime) || undefined,
    nextAttemptAt: isoTime(webhook.nextAttemptTime) || undefined,
  };
}
