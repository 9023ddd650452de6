import { readFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { expect } from "vitest";
import { dollars } from "../../services/host/cli/output.ts";
import { until } from "../support/until.ts";
import { root, startProcess, type Variables } from "./process.ts";

/** The environment for the lines of a page. */
export interface PageWorld {
  /** Ends in /v1. */
  baseUrl: string;
  /** The first key. */
  key: string;
  /** The working directory of the shell: an empty folder. */
  cwd: string;
  /** The operator's command finds the servers by this. */
  operator: { env: Variables; words?: string };
}

/** A page's shell lines, one text for each block. */
export const shellBlocks = (page: string) =>
  [...page.matchAll(/```sh\n(.*?)```/gs)].map(([, block = ""]) => block);

/** Runs lines of a page in a shell that stops at the first refused call. Answers the printed lines, one for each answer. */
export async function runLines(
  { baseUrl, cwd, operator }: Omit<PageWorld, "key">,
  lines: string,
  variables: Record<string, string>,
): Promise<string> {
  const genmesh = `node ${join(root, "bin/genmesh.js")} ${operator.words ?? ""}`;
  const script = [
    "set -euo pipefail",
    `curl() { command curl -sS --fail-with-body -w '\\n' "$@"; }`,
    `npx() { shift; ${genmesh} "$@"; }`,
    lines.replaceAll(/http:\/\/127\.0\.0\.1:\d+\/v1/g, baseUrl),
  ].join("\n");
  const env = { ...variables, ...operator.env };
  await using shell = startProcess("bash", ["-c", script], { cwd, env });
  const { code } = await shell.ended;
  const told = { code, stderr: shell.stderr(), stdout: shell.stdout() };
  expect(told).toMatchObject({ code: 0, stderr: "" });
  return shell.stdout();
}

/** Runs README.md's section about an application's key, on an installation without earlier requests. The audit confirms all its figures. */
export async function aKeyAsTheReadmeHasIt(where: PageWorld): Promise<void> {
  const page = readFileSync(join(root, "README.md"), "utf8");
  const [, section = ""] = /^## A key for an application\n(.*?)^## /ms.exec(page) ?? [];
  const [making = "", managing = ""] = shellBlocks(section);
  const variables = { KEY: where.key };
  const printed = await runLines(where, `${making}\necho $APP_KEY $ID`, variables);
  const [APP_KEY = "", ID = ""] = printed.trim().split(" ");

  const statusOf = async (key: string, path = "/models") => {
    const headers = { authorization: `Bearer ${key}` };
    return (await fetch(`${where.baseUrl}${path}`, { headers })).status;
  };
  expect(await statusOf(APP_KEY, "/keys")).toBe(403);
  const client = new OpenAI({ baseURL: where.baseUrl, apiKey: APP_KEY, maxRetries: 0 });
  let spent = 0;
  for (const input of ["Hello", "Why is the sky blue?"]) {
    const { usage } = await client.responses.create({ model: "chat-1", input });
    spent += (usage as unknown as { costUsdMicros: number }).costUsdMicros;
  }
  expect(spent).toBeGreaterThan(0);

  const setup = making.split("\n").filter((line) => line.startsWith("export API"));
  const [, revoking = ""] = /`(curl [^`]*-X DELETE [^`]+)`/.exec(section) ?? [];
  const run = async (...some: readonly string[]) =>
    (await runLines(where, [...setup, ...some].join("\n"), { ...variables, APP_KEY, ID }))
      .trim()
      .split("\n");

  const [limited = "", used = "", ...audit] = await run(managing, "echo $APP_KEY");
  const renewed = audit.pop() ?? "";
  const { data } = JSON.parse(limited);
  expect(data).toMatchObject({ limit: 0.5, limit_reset: "daily", spentUsdMicros: spent });
  expect(data.limitRemainingUsdMicros).toBe(500_000 - spent);
  const results = JSON.parse(used).data.flatMap((one: { results: object[] }) => one.results);
  expect(results).toMatchObject([
    { api_key_id: ID, model: "chat-1", num_model_requests: 2, spentUsdMicros: spent },
  ]);
  // The former key is valid for its grace. Each is used twice, because two gateways take turns.
  for (const key of [renewed, APP_KEY, renewed, APP_KEY]) expect(await statusOf(key)).toBe(200);

  const [revoked = ""] = await run(revoking);
  expect(JSON.parse(revoked)).toEqual({ deleted: true, id: ID });
  for (const key of [renewed, APP_KEY]) {
    await until("the key to be refused everywhere", async () => {
      return (await statusOf(key)) === 401 && (await statusOf(key)) === 401;
    });
  }

  expect(audit.at(-1)).toMatch(/the books agree$/);
  const cells = (...begin: string[]) =>
    audit
      .map((line) => line.trim().split(/ {2,}/))
      .find((row) => begin.every((one, i) => row[i] === one));
  const usd = (micros: number) => dollars(BigInt(micros));
  const counted = ["2", usd(spent), "2", usd(spent)];
  expect(cells(data.accountId, ID, "US dollars")?.slice(3)).toEqual(counted);
  const headers = { authorization: `Bearer ${where.key}` };
  const billing = await (await fetch(`${where.baseUrl}/billing`, { headers })).json();
  expect(cells("all", "US dollars")?.slice(2)).toEqual([
    usd(billing.availableUsdMicros),
    usd(billing.reservedUsdMicros),
    usd(billing.monthSpendUsdMicros),
    ...counted,
  ]);
  expect(billing.monthSpendUsdMicros).toBe(spent);
  expect(cells("all", "credits")?.slice(2, 5)).toEqual([
    `${billing.credits.available}`,
    `${billing.credits.reserved}`,
    `${billing.credits.monthSpent}`,
  ]);
  const csv = await (
    await fetch(`${where.baseUrl}/billing/entries?format=csv`, { headers })
  ).text();
  const charges = csv
    .split("\r\n")
    .map((row) => row.split(","))
    .filter((row) => row[2] === "charge");
  expect(charges.reduce((sum, row) => sum - Number(row[4]), 0)).toBe(spent);
}
