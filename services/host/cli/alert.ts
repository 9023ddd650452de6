// Adds the commands `genmesh alert …`, which list the operator's notices and send a test.

import type { Command } from "commander";
import { isoTime } from "#common/documents/answer-values.ts";
import { withExamples } from "./arguments.ts";
import { auditedByCli } from "./audit.ts";
import { printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

export function alertCommands(program: Command, cli: Cli): void {
  const alert = withExamples(
    program.command("alert").description("what an operator must act on, and how they are told"),
    "alert list",
    "alert test",
  );
  withExamples(
    alert.command("list").description("what an operator must act on now"),
    "alert list",
  ).action(() => list(cli));
  withExamples(
    alert
      .command("test")
      .description(
        "sends a test by each way that is configured, and says what its receiver answered",
      ),
    "alert test",
  ).action(() => test(cli));
}

async function list(cli: Cli): Promise<void> {
  const { notices, ways } = await cli.peers().media.listNotices({});
  if (cli.json) {
    return printJson(cli, {
      notices: notices.map(({ noticeId, kind, subject, severity, text, alert, beginTime }) => ({
        ...{ id: noticeId, kind, subject, severity, text, alert, beganAt: isoTime(beginTime) },
      })),
      ways: ways.map(({ name, failures, lastAnswer, lastDeliveryTime }) => ({
        ...{ way: name, failures, lastAnswer: lastAnswer || undefined },
        lastDeliveredAt: isoTime(lastDeliveryTime) || undefined,
      })),
    });
  }
  printTable(
    cli,
    ["severity", "since", "notice", "runbook"],
    notices.map(({ severity, beginTime, text, alert }) => [
      ...[severity, isoTime(beginTime), text, alert],
    ]),
    "nothing to act on",
  );
}

async function test(cli: Cli): Promise<void> {
  const { answers } = await auditedByCli(cli, { action: "alert.test" }, () =>
    cli.peers().media.sendTestAlert({}),
  );
  const isTold = answers.length > 0 && answers.every(({ isDelivered }) => isDelivered);
  cli.exitCode = isTold ? 0 : 1;
  if (cli.json) {
    return printJson(cli, {
      answers: answers.map(({ way, isDelivered, answer }) => ({ way, isDelivered, answer })),
    });
  }
  printTable(
    cli,
    ["way", "delivered", "answer"],
    answers.map(({ way, isDelivered, answer }) => [way, isDelivered ? "yes" : "no", answer]),
    "no way is configured: set GENMESH_ALERT_WEBHOOK_URL or GENMESH_ALERT_SMTP_URL",
  );
}
