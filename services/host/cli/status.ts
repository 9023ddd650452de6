// Adds `genmesh status`, which says in one table what runs, waits and fails. `processes.ts` finds the processes.

import type { Command } from "commander";
import { createPeers, type Peers } from "#common/agreements/peers.ts";
import { type StatusDocument, statusDocument } from "#common/documents/status-document.ts";
import { withExamples } from "./arguments.ts";
import { operatorTransport } from "./client.ts";
import { printJson, printTable } from "./output.ts";
import { askProcesses, askTimeoutMs } from "./processes.ts";
import type { Cli } from "./program.ts";

/** Holds that are read. The oldest are among them. */
const holdsRead = 1_000;

/** Adds `status`. */
export function statusCommand(program: Command, cli: Cli): void {
  withExamples(
    program
      .command("status")
      .description(
        "what runs, its stores and upstreams, and what waits; exit 1 where one is wrong",
      ),
    "status",
    "status --json",
  ).action(() => status(cli));
}

async function status(cli: Cli): Promise<void> {
  const { config, server } = cli;
  const processes = await askProcesses(config, server);
  // Without repeats: a service that is away is a finding.
  const peers = createPeers((peer) => {
    const [url] = server === undefined ? (config.peers[peer] ?? []) : [];
    const { transport } = operatorTransport(config, { server, url, timeoutMs: askTimeoutMs });
    return transport;
  });
  const nowMs = Date.now();
  const document = statusDocument({ processes, nowMs, ...(await answersOf(peers)) });
  if (!document.ok) cli.exitCode = 1;
  if (cli.json) return printJson(cli, document);
  print(cli, document);
}

async function answersOf({ catalog, text, billing }: Peers) {
  const orNone = <T>(answer: Promise<T>) => answer.catch(() => undefined);
  const [snapshot, health, holds] = await Promise.all([
    orNone(catalog.getSnapshot({})),
    orNone(text.listUpstreamHealth({})),
    orNone(billing.listHolds({ pageSize: holdsRead })),
  ]);
  return {
    ...{ snapshot: snapshot?.snapshot, health },
    holds: holds && { open: holds.holds, isMore: holds.nextPageToken !== "" },
  };
}

function print(cli: Cli, document: StatusDocument): void {
  const { processes, stores, upstreams, catalog, backlogs, holds, faults } = document;
  const table = (head: string[], rows: string[][], empty: string) => {
    printTable(cli, head, rows, empty);
    cli.out("\n");
  };
  table(
    ["process", "address", "version", "state", "since"],
    processes.map(({ role, address, version, state, startedAt }) => [
      ...[role, address, version ?? "", words(state), startedAt ?? ""],
    ]),
    "no processes",
  );
  table(
    ["store", "kind", "state", "of"],
    stores.map(({ name, kind, isUp, roles }) => [
      ...[name, kind ?? "", isUp ? "up" : "away", roles.join(", ")],
    ]),
    "no stores are known",
  );
  table(
    ["upstream", "protocol", "state", "requests", "errors", "last error", "rests for"],
    (upstreams ?? []).map((one) => [
      ...[one.name, one.protocol, words(one.state), `${one.requests}`, `${one.errors}`],
      ...[one.lastError ?? "", one.resting.map(words).join(", ")],
    ]),
    upstreams ? "no upstreams" : "no upstreams are known",
  );
  if (catalog) cli.out(`catalog ${catalog.version} is in force: ${catalog.models} models\n\n`);
  const waiting = backlogs.filter(({ count }) => count > 0);
  table(
    ["waiting", "kind", "state", "count", "oldest"],
    [...waiting.map(backlogRow), ...(holds && holds.open > 0 ? [holdsRow(holds)] : [])],
    "nothing waits",
  );
  if (faults.length === 0) cli.out("all is well\n");
  else cli.out(`${["wrong:", ...faults].join("\n  ")}\n`);
}

function backlogRow({ subject, kind, state, count, oldestSeconds }: StatusDocument["backlogs"][0]) {
  return [subject, kind ?? "", state, `${count}`, oldestSeconds > 0 ? `${oldestSeconds} s` : ""];
}

function holdsRow({ open, isMore, oldestAt, overdue }: NonNullable<StatusDocument["holds"]>) {
  const state = overdue > 0 ? `${overdue} overdue` : "open";
  return ["holds", "", state, `${open}${isMore ? " or more" : ""}`, oldestAt ?? ""];
}

/** A name of the document for people: "not_ready" as "not ready". */
function words(name: string): string {
  return name.replaceAll("_", " ");
}
