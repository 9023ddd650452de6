import type { Command } from "commander";
import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { checkCatalogFile } from "../../catalog/index.ts";
import { withExamples } from "./arguments.ts";
import { printJson } from "./output.ts";
import type { Cli } from "./program.ts";

export function catalogCommands(program: Command, cli: Cli): void {
  const catalog = withExamples(
    program.command("catalog").description("the catalog file"),
    "catalog check deploy/catalog.yaml",
  );
  withExamples(
    catalog
      .command("check <file>")
      .description("validate a catalog file without a server; exit 1 where it has faults")
      .option(
        "--online",
        "ask its upstreams too whether they have what it calls; generates nothing",
      ),
    "catalog check deploy/catalog.yaml",
    "catalog check my-catalog.yaml --json",
    "catalog check my-catalog.yaml --online",
  ).action((file: string, options: { online?: boolean }) => check(cli, file, options));
}

async function check(cli: Cli, file: string, { online = false }): Promise<void> {
  const ask = (snapshot: Snapshot) => askUpstreams(cli, snapshot);
  const { faults, models } = await checkCatalogFile(file, online ? ask : undefined);
  if (faults.length > 0) cli.exitCode = 1;
  if (cli.json) return printJson(cli, { ok: faults.length === 0, models, faults });
  for (const { path, message } of faults) cli.out(`${path || "(file)"}: ${message}\n`);
  cli.out(`${file}: ${faults.length === 0 ? `${models} models, no faults` : faultCount(faults)}\n`);
}

async function askUpstreams({ config }: Cli, snapshot: Snapshot) {
  const { checkOnline } = await import("../../upstreams/online/index.ts");
  const { createHttpClient } = await import("#kit/upstream/client.ts");
  await using http = createHttpClient();
  return await checkOnline(snapshot, { http, secrets: config.secret });
}

function faultCount(faults: readonly unknown[]): string {
  return faults.length === 1 ? "1 fault" : `${faults.length} faults`;
}
