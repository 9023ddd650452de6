import type { Command } from "commander";
import { checkCatalogFile } from "../../catalog/index.ts";
import { printJson } from "./output.ts";
import type { Cli } from "./program.ts";

/** `genmesh catalog …` */
export function catalogCommands(program: Command, cli: Cli): void {
  program
    .command("catalog")
    .description("the catalog file")
    .command("check <file>")
    .description(
      "validate a catalog file without a server; exit 1 where it has faults, each named with its path",
    )
    .action(async (file: string) => {
      const { faults, models } = await checkCatalogFile(file);
      if (faults.length > 0) cli.exitCode = 1;
      if (cli.json) return printJson(cli, { ok: faults.length === 0, models, faults });
      for (const { path, message } of faults) cli.out(`${path || "(file)"}: ${message}\n`);
      cli.out(
        faults.length === 0
          ? `${file}: ${models} models, no faults\n`
          : `${faults.length} faults\n`,
      );
    });
}
