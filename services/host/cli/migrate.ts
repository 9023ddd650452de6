// Adds `genmesh migrate`, which brings the database of a mesh up to this release before its roles start.

import type { Command } from "commander";
import { ConfigError } from "../env.ts";
import { migrateMesh } from "../migrate.ts";
import { withExamples } from "./arguments.ts";
import { printFacts, printJson } from "./output.ts";
import type { Cli } from "./program.ts";

export function migrateCommand(program: Command, cli: Cli): void {
  withExamples(
    program
      .command("migrate")
      .description(
        "bring the database of GENMESH_DATABASE_URL up to this build; exit 1 where a newer build has written it",
      ),
    "migrate",
    "migrate --json",
  ).action(() => migrate(cli));
}

async function migrate(cli: Cli): Promise<void> {
  const { database } = cli.config.stores();
  if (database?.kind !== "mongodb") {
    throw new ConfigError(
      "GENMESH_DATABASE_URL must be mongodb://HOST/DATABASE: an embedded database is brought up to date by the process that opens it",
    );
  }
  const migrated = await migrateMesh(database.url);
  if (cli.json) return printJson(cli, { migrated });
  printFacts(
    cli,
    migrated.map(({ component, version }) => [component, `version ${version}`]),
  );
}
