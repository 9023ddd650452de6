// Adds the commands `genmesh catalog …` for files, which need no server: check, explain, schema. `catalog-versions.ts` and
// `catalog-keys.ts` have those that ask a server.

import { type Command, InvalidArgumentError } from "commander";
import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { checkCatalogFile } from "../../catalog/index.ts";
import type { PriceExample } from "../price-examples.ts";
import { withExamples } from "./arguments.ts";
import { keyStoreCommands } from "./catalog-keys.ts";
import { versionCommands } from "./catalog-versions.ts";
import { dollars, printJson, printTable } from "./output.ts";
import type { Cli } from "./program.ts";

export function catalogCommands(program: Command, cli: Cli): void {
  const catalog = withExamples(
    program.command("catalog").description("the catalog: its file, and its versions in the store"),
    "catalog check deploy/catalog.yaml",
    "catalog show > catalog.yaml",
  );
  versionCommands(catalog, cli);
  keyStoreCommands(catalog, cli);
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
      )
      .option("--example", "print what requests of its models cost, one for each part of a price"),
    "catalog check deploy/catalog.yaml",
    "catalog check my-catalog.yaml --json",
    "catalog check my-catalog.yaml --online",
    "catalog check deploy/catalogs/xai.yaml --requests",
    "catalog check my-catalog.yaml --example",
  ).action((file: string, options: Asked) => check(cli, file, options));
  withExamples(
    catalog
      .command("explain [key]")
      .description("what a key of a catalog file means, where it stands, and the values it takes"),
    "catalog explain",
    "catalog explain fallbackUpstreams",
    "catalog explain pricing.longInput",
  ).action((key?: string) => explain(cli, key));
  withExamples(
    catalog
      .command("schema")
      .description("the JSON schema of a catalog file, for an editor's language server"),
    "catalog schema > catalog.schema.json",
  ).action(async () => {
    const { catalogJsonSchema } = await import("../../catalog/index.ts");
    cli.out(`${JSON.stringify(catalogJsonSchema(), null, 2)}\n`);
  });
}

/** Explains the keys of this name, or of this path's end. Without a name: those of the file itself. */
async function explain(cli: Cli, wanted?: string): Promise<void> {
  const { catalogJsonSchema, keysIn, valuesOf } = await import("../../catalog/index.ts");
  const keys = keysIn(catalogJsonSchema()).filter(({ path }) =>
    wanted === undefined ? path.length === 1 : `.${path.join(".")}`.endsWith(`.${wanted}`),
  );
  if (keys.length === 0)
    throw new InvalidArgumentError(`No key of a catalog file is called ${wanted}.`);
  const explained = keys.map(({ place, schema, isRequired }) => ({
    place,
    description: String(schema.description ?? ""),
    values: valuesOf(schema),
    required: isRequired,
    ...(schema.default === undefined ? {} : { default: schema.default }),
  }));
  if (cli.json) return printJson(cli, explained);
  const blocks = Map.groupBy(explained, ({ place: _, ...shared }) => JSON.stringify(shared));
  for (const block of blocks.values()) {
    const [first] = block;
    if (!first) continue;
    const fallback =
      first.default === undefined ? "" : `; default ${JSON.stringify(first.default)}`;
    const need = first.required ? "required" : `optional${fallback}`;
    const places = block.map(({ place }) => place).join("\n");
    cli.out(`${places}\n  ${first.description}\n  ${first.values}; ${need}\n\n`);
  }
}

/** The wishes of a check beside reading the file. */
interface Asked {
  online?: boolean;
  requests?: boolean;
  example?: boolean;
}

async function check(cli: Cli, file: string, asked: Asked): Promise<void> {
  const { online = false, requests: isShown = false, example = false } = asked;
  const { checkOnline, requestsOf } = await import("../../upstreams/online/index.ts");
  const { priceExamples } = await import("../price-examples.ts");
  let requests: ReturnType<typeof requestsOf> = [];
  let examples: PriceExample[] = [];
  const { faults, models } = await checkCatalogFile(file, async (snapshot) => {
    if (isShown) requests = requestsOf(snapshot);
    if (example) examples = priceExamples(snapshot);
    return online ? await askUpstreams(cli, snapshot, checkOnline) : [];
  });
  if (faults.length > 0) cli.exitCode = 1;
  if (cli.json) {
    const shown = {
      ...(isShown ? { requests } : {}),
      ...(example ? { examples: examples.map(printedExample) } : {}),
    };
    return printJson(cli, { ok: faults.length === 0, models, faults, ...shown });
  }
  for (const { model, method, url, headers, body } of requests) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`);
    cli.out(`# ${model}\n${method} ${url}\n${lines.join("")}${JSON.stringify(body)}\n\n`);
  }
  if (examples.length > 0) {
    printExamples(cli, examples);
    cli.out("\n");
  }
  for (const { path, message } of faults) cli.out(`${path || "(file)"}: ${message}\n`);
  cli.out(`${file}: ${faults.length === 0 ? `${models} models, no faults` : faultCount(faults)}\n`);
}

/** An example for programs. Amounts are whole credits or millionths of a dollar. */
function printedExample({ hold, charge, upstreamCost, ...example }: PriceExample) {
  return { ...example, held: hold, charged: charge, upstreamCostUsdMicros: upstreamCost ?? null };
}

function printExamples(cli: Cli, examples: readonly PriceExample[]): void {
  const rows = examples.map(({ model, request, unit, hold, charge, upstreamCost }) => {
    const sum = (amount: bigint) => (unit === "credits" ? `${amount} credits` : dollars(amount));
    const cost = upstreamCost === undefined ? "–" : dollars(upstreamCost);
    return [model, request, sum(hold), sum(charge), cost];
  });
  printTable(cli, ["model", "request", "held", "charged", "at the upstream"], rows, "");
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
