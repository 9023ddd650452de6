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
      )
      .option(
        "--requests",
        "print each request that its models would send where it declares the HTTP; sends nothing",
      ),
    "catalog check deploy/catalog.yaml",
    "catalog check my-catalog.yaml --json",
    "catalog check my-catalog.yaml --online",
    "catalog check deploy/catalogs/xai.yaml --requests",
  ).action((file: string, options: Asked) => check(cli, file, options));
}

/** The wishes of a check beside reading the file. */
interface Asked {
  online?: boolean;
  requests?: boolean;
}

async function check(cli: Cli, file: string, asked: Asked): Promise<void> {
  const { online = false, requests: isShown = false } = asked;
  const { checkOnline, requestsOf } = await import("../../upstreams/online/index.ts");
  let requests: ReturnType<typeof requestsOf> = [];
  const look = async (snapshot: Snapshot) => {
    if (isShown) requests = requestsOf(snapshot);
    return online ? await askUpstreams(cli, snapshot, checkOnline) : [];
  };
  const { faults, models } = await checkCatalogFile(file, online || isShown ? look : undefined);
  if (faults.length > 0) cli.exitCode = 1;
  const shown = isShown ? { requests } : {};
  if (cli.json) return printJson(cli, { ok: faults.length === 0, models, faults, ...shown });
  for (const { model, method, url, headers, body } of requests) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`);
    cli.out(`# ${model}\n${method} ${url}\n${lines.join("")}${JSON.stringify(body)}\n\n`);
  }
  for (const { path, message } of faults) cli.out(`${path || "(file)"}: ${message}\n`);
  cli.out(`${file}: ${faults.length === 0 ? `${models} models, no faults` : faultCount(faults)}\n`);
}

async function askUpstreams(
  { config }: Cli,
  snapshot: Snapshot,
  checkOnline: typeof import("../../upstreams/online/index.ts")["checkOnline"],
) {
  const { createHttpClient } = await import("#kit/upstream/client.ts");
  await using http = createHttpClient();
  return await checkOnline(snapshot, { http, secrets: config.secret });
}

function faultCount(faults: readonly unknown[]): string {
  return faults.length === 1 ? "1 fault" : `${faults.length} faults`;
}
