// Adds the commands `genmesh catalog …` for stored keys of upstreams: list, set, delete.

import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { upstreamKeyDocument } from "#common/documents/upstream-key-document.ts";
import { storedKeyName, storedKeyNameText } from "#common/words/stored-key-name.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { ConfigError } from "../env.ts";
import { withExamples } from "./arguments.ts";
import { auditedByCli, cliActor } from "./audit.ts";
import { printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

/** The commands for stored keys. */
export function keyStoreCommands(catalog: Command, cli: Cli): void {
  withExamples(
    catalog
      .command("keys")
      .description("the stored keys of upstreams, without their values, and who uses them"),
    "catalog keys",
  ).action(() => list(cli));
  withExamples(
    catalog
      .command("set-key")
      .argument("<name>", "by which the catalog names it")
      .description("store a key of an upstream, or replace it; in force within 2 s everywhere")
      // A key is no argument, because others see a machine's arguments.
      .requiredOption("--key-file <file>", "the file that holds the key; - for standard input"),
    "catalog set-key fal --key-file fal.txt",
  ).action((name: string, { keyFile }: { keyFile: string }) => set(cli, keyName(name), keyFile));
  withExamples(
    catalog
      .command("delete-key")
      .argument("<name>", "by which the catalog names it")
      .description("delete a stored key; refused while the catalog in force names it"),
    "catalog delete-key fal",
  ).action((name: string) => remove(cli, keyName(name)));
}

/** A text of another form may be a key in the wrong place. The audit log must not get it, and the error does not repeat it. */
function keyName(value: string): string {
  if (storedKeyName.test(value)) return value;
  throw new ConfigError(`The name of a key must be ${storedKeyNameText}.`);
}

async function list(cli: Cli): Promise<void> {
  const { keys, isOn } = await cli.peers().catalog.listUpstreamKeys({});
  const rows = keys.map(upstreamKeyDocument);
  if (cli.json) return printJson(cli, { keys: rows, isOn });
  printTable(
    cli,
    ["key", "ends in", "when", "who", "upstreams"],
    rows.map(({ name, hint, setAt, actor, upstreams }) => [
      ...[name, hint ?? "", setAt ?? "", actor],
      upstreams.join(", "),
    ]),
    isOn ? "no stored keys" : "stored keys are off",
  );
}

async function set(cli: Cli, name: string, file: string): Promise<void> {
  // Not by the path /dev/stdin: it cannot be opened where standard input is a socket, or a pipe of another user.
  const read = await (file === "-" ? text(process.stdin) : readFile(file, "utf8"));
  const asked = { name, key: read.trim(), actor: cliActor() };
  const { key } = await auditedByCli(cli, { action: "catalog.set_key", target: name }, () =>
    cli.peers().catalog.setUpstreamKey(asked),
  );
  const made = upstreamKeyDocument(key ?? refuse(ErrorReason.SERVICE_UNAVAILABLE));
  if (cli.json) printJson(cli, made);
  else cli.out(`The key ${made.name} is stored. Within 2 s all replicas have it.\n`);
}

async function remove(cli: Cli, name: string): Promise<void> {
  await auditedByCli(cli, { action: "catalog.delete_key", target: name }, () =>
    cli.peers().catalog.deleteUpstreamKey({ name }),
  );
  if (cli.json) printJson(cli, { name, deleted: true });
  else cli.out(`The key ${name} is deleted.\n`);
}
