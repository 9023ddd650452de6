// Adds the commands `genmesh backup` and `genmesh restore`. The copying itself is in `../backup.ts`.

import type { Command } from "commander";
import { type Backup, backUp, ownState, restore } from "../backup.ts";
import { withExamples } from "./arguments.ts";
import { printFacts, printJson } from "./output.ts";
import type { Cli } from "./program.ts";

export function backupCommands(program: Command, cli: Cli): void {
  const state = () => ownState(cli.config.dataDir, cli.config.stores());
  withExamples(
    program
      .command("backup <folder>")
      .description(
        "copy the state of a one-process install into a new folder, while it runs or not; takes the service's own variables",
      ),
    "backup /mnt/backups/2027-01-31",
    "backup /mnt/backups/2027-01-31 --json",
  ).action(async (folder: string) => print(cli, await backUp(state(), folder)));
  withExamples(
    program
      .command("restore <folder>")
      .description(
        "bring a backup back into the places that the variables name, which must be empty, while no service runs there",
      ),
    "restore /mnt/backups/2027-01-31",
  ).action(async (folder: string) => print(cli, await restore(folder, state())));
}

function print(cli: Cli, { folder, databaseBytes, files }: Backup): void {
  if (cli.json) {
    printJson(cli, { folder, databaseBytes, files: files ?? null });
    return;
  }
  printFacts(cli, [
    ["backup", folder],
    ["database", `checked, ${databaseBytes} bytes`],
    ["files", files ? `${files.count}, ${files.bytes} bytes` : "none: they are in the S3 store"],
  ]);
}
