import type { Command } from "commander";
import { checkCatalogFile } from "../../catalog/index.ts";
import { withExamples } from "./help.ts";
import { printJson } from "./output.ts";
import type { Cli } from "./program.ts";

/** `genmesh catalog …` */
export function catalogCommands(program: Command, cli: Cli): void {
  const catalog = withExamples(
    program.command("catalog").description("the catalog file"),
    "catalog check deploy/catalog.yaml",
  );
  withExamples(
    catalog
      .command("check <file>")
      .description("validate a catalog file without a server; exit 1 where it has faults"),
    "catalog check deploy/catalog.yaml",
    "catalog check my-catalog.yaml --json",
  ).action((file: string) => check(cli, file));
}

async function check(cli: Cli, file: string): Promise<void> {
  const { faults, models } = await checkCatalogFile(file);
  if (faults.length > 0) cli.exitCode = 1;
  if (cli.json) return printJson(cli, { ok: faults.length === 0, models, faults });
  for (const { path, message } of faults) cli.out(`${path || "(file)"}: ${message}\n`);
  cli.out(`${file}: ${faults.length === 0 ? `${models} models, no faults` : faultCount(faults)}\n`);
}

function faultCount(faults: readonly unknown[]): string {
  return faults.length === 1 ? "1 fault" : `${faults.length} faults`;
}
