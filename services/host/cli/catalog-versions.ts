// Adds the commands `genmesh catalog …` that ask a running server: show, list and put versions in force. `catalog.ts` has those
// for files.

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { refusedText, versionDocument } from "#common/documents/version-document.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { CatalogVersion } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { operationId, wholeNumber, withExamples } from "./arguments.ts";
import { auditedByCli, cliActor } from "./audit.ts";
import { printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

/** Versions that a list prints at most: those of some years. */
const maxListed = 100;
const versionNumber = wholeNumber(0, 999_999_999);

/** The commands for the catalog of a running server. */
export function versionCommands(catalog: Command, cli: Cli): void {
  withExamples(
    catalog
      .command("show")
      .description("print the text of the catalog in force, or of a version of it")
      .option("--number <number>", "this version", versionNumber),
    "catalog show > catalog.yaml",
    "catalog show --number 3",
  ).action(({ number }: { number?: number }) => show(cli, number));
  withExamples(
    catalog
      .command("versions")
      .description("the versions in the store, newest first: who put them in force, when and why"),
    "catalog versions",
  ).action(() => versions(cli));
  withExamples(
    putOptions(
      catalog
        .command("put <file>")
        .description("put a catalog in force as the next version, within 2 s everywhere"),
    ),
    'catalog put catalog.yaml --note "dearer images"',
    "catalog put catalog.yaml --expect 4",
  ).action(async (file: string, options: PutOptions) =>
    put(cli, { case: "yaml", value: await readFile(file, "utf8") }, options),
  );
  withExamples(
    putOptions(
      catalog
        .command("roll-back")
        .description("put an earlier version in force again, as the next one")
        .argument("<number>", "the number of the version", versionNumber),
    ),
    "catalog roll-back 3",
  ).action((value: number, options: PutOptions) => put(cli, { case: "number", value }, options));
}

interface PutOptions {
  note?: string;
  expect?: number;
  operationId?: string;
}

function putOptions(command: Command): Command {
  return command
    .option("--note <words>", "why, for the list of versions")
    .option(
      "--expect <number>",
      "the newest version that you know; refused where there is another since (default: the newest)",
      versionNumber,
    )
    .option(
      "--operation-id <id>",
      "a repeat with the same id makes no second version",
      operationId,
    );
}

async function show(cli: Cli, number?: number): Promise<void> {
  const asked = number === undefined ? {} : { number };
  const told = await cli.peers().catalog.getText(asked);
  if (!cli.json) {
    cli.out(told.yaml);
    return;
  }
  const version = told.version ? versionDocument(told.version) : null;
  const { yaml, isEditable, newestNumber: newest } = told;
  printJson(cli, { yaml, version, isEditable, newest });
}

async function versions(cli: Cli): Promise<void> {
  const found = await cli.peers().catalog.listVersions({ pageSize: maxListed });
  const rows = found.versions.map(versionDocument);
  if (cli.json) return printJson(cli, { versions: rows });
  printTable(
    cli,
    ["version", "when", "who", "models", "note"],
    rows.map(({ number, createdAt, actor, models, note }) => [
      ...[`${number}`, createdAt ?? "", actor ?? "the file"],
      ...[`${models}`, note ?? ""],
    ]),
    "no versions: the file is in force",
  );
}

async function put(
  cli: Cli,
  text: { case: "yaml"; value: string } | { case: "number"; value: number },
  { note = "", expect, operationId: own = randomUUID() }: PutOptions,
): Promise<void> {
  const { catalog } = cli.peers();
  const expectedNumber = expect ?? (await catalog.getText({})).newestNumber;
  const action = text.case === "yaml" ? "catalog.put" : "catalog.roll_back";
  const back = text.case === "number" ? { version: text.value } : {};
  const details = { expected: expectedNumber, operationId: own, ...back };
  const asked = { text, expectedNumber, note, actor: cliActor(), operationId: own };
  const { version, replayed } = await auditedByCli(
    cli,
    { action, details },
    async () => {
      const { version, faults, replayed } = await catalog.putInForce(asked);
      if (version) return { version, replayed };
      return refuse(ErrorReason.INVALID_ARGUMENT, { message: refusedText(faults) });
    },
    ({ version }) => ({ target: `version ${version.number}` }),
  );
  print(cli, version, replayed);
}

function print(cli: Cli, version: CatalogVersion, replayed: boolean): void {
  if (cli.json) {
    printJson(cli, { ...versionDocument(version), replayed });
    return;
  }
  cli.out(`Version ${version.number} is in force: ${version.models} models.\n`);
}
