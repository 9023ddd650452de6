import { timestampMs } from "@bufbuild/protobuf/wkt";
import { expect } from "vitest";
import { type Entry, EntryKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Caller } from "./caller.ts";
import type { Document } from "./media-world.ts";
import type { HostProcess } from "./process.ts";

/** The charge and usage of one request or job, by the entries of the journal. */
interface Ended {
  /** The time of its charge, in ms since the epoch. */
  at: number;
  keyId: string;
  model: string;
  kind: string;
  /** Less the refund. */
  usdMicros: number;
  credits: number;
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningTokens: number;
  images: number;
  mediaMs: number;
  characters: number;
  parts: Parts;
  /** Undefined: unknown. */
  upstreamCost: bigint | undefined;
}

/** The parts of a request that have prices of their own, by the names of `GET /usage`. */
type Parts = Record<(typeof partNames)[number], number>;

const partNames = [
  "input_cache_write_tokens",
  "input_cache_write_long_tokens",
  "input_audio_tokens",
  "input_image_tokens",
  "output_audio_tokens",
  "output_image_tokens",
  "tool_calls",
] as const;

function partsOf(record: Entry["record"]): Parts {
  const priced = record?.priced;
  const calls = Object.values(priced?.toolCalls ?? {});
  return {
    input_cache_write_tokens: Number(priced?.inputCacheWriteTokens ?? 0n),
    input_cache_write_long_tokens: Number(priced?.inputCacheWriteLongTokens ?? 0n),
    input_audio_tokens: Number(priced?.inputAudioTokens ?? 0n),
    input_image_tokens: Number(priced?.inputImageTokens ?? 0n),
    output_audio_tokens: Number(priced?.outputAudioTokens ?? 0n),
    output_image_tokens: Number(priced?.outputImageTokens ?? 0n),
    tool_calls: calls.reduce((sum, one) => sum + Number(one), 0),
  };
}

/** The figures with which all views of the account are compared. */
export interface Truth {
  ended: Ended[];
  grantedUsdMicros: number;
  grantedCredits: number;
  refunds: number;
}

/** Grouping of usage, by the names of the API. */
export const groupings = ["model", "api_key_id", "kind"] as const;

const hourSeconds = 3_600;
const daySeconds = 86_400;
const kinds: Readonly<Record<string, string>> = {
  ...{ responses: "text", chat: "text", compact: "text" },
  ...{ speech: "speech", image: "image", video: "video" },
};

/** Adds the journal up, entry by entry. The entries name no key. The requests' list has it. */
export async function readTruth({ billing }: HostProcess, all: Caller): Promise<Truth> {
  const keyOf = new Map(
    (await pagesOf(all, "/requests?limit=100")).map((one) => [idOf(one), one.keyId]),
  );
  const entries: Entry[] = [];
  for (let pageToken = ""; ; ) {
    const page = await billing.listEntries({
      accountId: all.accountId,
      pageSize: 1_000,
      pageToken,
    });
    entries.push(...page.entries);
    pageToken = page.nextPageToken;
    if (pageToken === "") break;
  }
  const truth: Truth = { ended: [], grantedUsdMicros: 0, grantedCredits: 0, refunds: 0 };
  const charges = new Map<string, Ended>();
  for (const entry of entries.reverse()) {
    const isUsd = entry.unit === Unit.USD_MICROS;
    const spent = Number(entry.spentDelta);
    if (entry.kind === EntryKind.GRANT) {
      if (isUsd) truth.grantedUsdMicros += Number(entry.freeDelta);
      else truth.grantedCredits += Number(entry.freeDelta);
    } else if (entry.kind === EntryKind.REFUND) {
      truth.refunds++;
      const charge = charges.get(`${entry.unit}-${entry.refundOf}`);
      if (!charge) throw new Error("a refund of no charge");
      charge[isUsd ? "usdMicros" : "credits"] += spent;
    } else if (entry.record || spent > 0) {
      const { record } = entry;
      const charge: Ended = {
        at: entry.time ? timestampMs(entry.time) : 0,
        keyId: keyOf.get(record?.requestId || record?.answerId || entry.holdId) ?? "",
        model: record?.model ?? "",
        kind: kinds[record?.operation ?? ""] ?? "",
        usdMicros: isUsd ? spent : 0,
        credits: isUsd ? 0 : spent,
        inputTokens: Number(record?.inputTokens ?? 0n),
        cachedInputTokens: Number(record?.cachedInputTokens ?? 0n),
        outputTokens: Number(record?.outputTokens ?? 0n),
        reasoningTokens: Number(record?.reasoningTokens ?? 0n),
        images: Number(record?.images ?? 0n),
        mediaMs: Number(record?.mediaMs ?? 0n),
        characters: Number(record?.characters ?? 0n),
        parts: partsOf(record),
        upstreamCost: record?.priced?.upstreamCostUsdMicros,
      };
      charges.set(`${entry.unit}-${entry.number}`, charge);
      truth.ended.push(charge);
    }
  }
  return truth;
}

/** The id of a request. An upstream may give the same id to two answers. */
function idOf({ requestId, id }: Document): string {
  return requestId ?? id;
}

/** One result of usage, by the names of the API. */
export interface Sums extends Parts {
  num_model_requests: number;
  input_tokens: number;
  input_cached_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  images: number;
  seconds: number;
  characters: number;
  spentUsdMicros: number;
  spentCredits: number;
}

const sumNames = [
  "num_model_requests",
  "input_tokens",
  "input_cached_tokens",
  "output_tokens",
  "reasoning_tokens",
  "images",
  "seconds",
  "characters",
  ...partNames,
  "spentUsdMicros",
  "spentCredits",
] as const satisfies readonly (keyof Sums)[];

/** The journal's sums by "<begin> <groups>". */
export function usageOf(
  { ended }: Pick<Truth, "ended">,
  widthSeconds: number,
  by: readonly string[],
): Map<string, Sums> {
  const usage = new Map<string, Sums>();
  for (const one of ended) {
    const start = Math.floor(one.at / 1_000 / widthSeconds) * widthSeconds;
    const values = { model: one.model, api_key_id: one.keyId, kind: one.kind };
    const name = nameOf(start, values, by);
    const sums = usage.get(name) ?? {
      ...{ num_model_requests: 0, input_tokens: 0, input_cached_tokens: 0, output_tokens: 0 },
      ...{ reasoning_tokens: 0, images: 0, seconds: 0, characters: 0, ...partsOf(undefined) },
      ...{ spentUsdMicros: 0, spentCredits: 0 },
    };
    usage.set(name, sums);
    sums.num_model_requests++;
    sums.input_tokens += one.inputTokens;
    sums.input_cached_tokens += one.cachedInputTokens;
    sums.output_tokens += one.outputTokens;
    sums.reasoning_tokens += one.reasoningTokens;
    sums.images += one.images;
    // Added up in whole milliseconds, like in the ledger.
    sums.seconds = (Math.round(sums.seconds * 1_000) + one.mediaMs) / 1_000;
    sums.characters += one.characters;
    for (const name of partNames) sums[name] += one.parts[name];
    sums.spentUsdMicros += one.usdMicros;
    sums.spentCredits += one.credits;
  }
  return usage;
}

function nameOf(start: number, values: Document, by: readonly string[]): string {
  return [start, ...groupings.map((name) => (by.includes(name) ? values[name] : ""))].join(" ");
}

/** Compares every view of the API with the journal. `keys` are callers that see their own part. */
export async function compareViews(
  host: HostProcess,
  { all, keys, fromSeconds }: { all: Caller; keys: readonly Caller[]; fromSeconds: number },
): Promise<Truth> {
  const truth = await readTruth(host, all);
  const { ended } = truth;
  const usdMicros = sumOf(ended, "usdMicros");
  const credits = sumOf(ended, "credits");

  const groups = [[], ...groupings.map((one) => [one]), [...groupings]];
  for (const [width, widthSeconds] of Object.entries({ "1h": hourSeconds, "1d": daySeconds })) {
    for (const by of groups) {
      const query = `start_time=${fromSeconds}&bucket_width=${width}${by.map((one) => `&group_by[]=${one}`).join("")}`;
      const expected = usageOf(truth, widthSeconds, by);
      expect(await askUsage(all, query, by), query).toEqual(expected);
      expect(await askUsageCsv(all, query, by), `${query} as CSV`).toEqual(expected);
      for (const key of keys) {
        const own = { ended: ended.filter(({ keyId }) => keyId === key.keyId) };
        expect(await askUsage(key, query, by), `a key's ${query}`).toEqual(
          usageOf(own, widthSeconds, by),
        );
      }
    }
  }

  const requests = await pagesOf(all, "/requests?limit=7");
  const entries = await pagesOf(all, "/billing/entries?limit=9");
  const refunded = entries.filter(({ kind }) => kind === "refund");
  const back = (unit: string) =>
    refunded.filter((one) => one.unit === unit).reduce((sum, { amount }) => sum + amount, 0);
  expect(new Set(requests.map(idOf)).size).toBe(ended.length);
  expect(requests).toHaveLength(ended.length);
  expect(sumOf(requests, "costUsdMicros") - back("usd_micros")).toBe(usdMicros);
  expect(sumOf(requests, "creditsCharged") - back("credits")).toBe(credits);
  expect(refunded).toHaveLength(truth.refunds);
  for (const { refundOf, request, keyId } of refunded) {
    const charge = entries.find(({ id }) => id === refundOf);
    expect(charge).toMatchObject({ kind: "charge", request, keyId, refundOf: null });
  }

  const { json: billing } = await all.get("/billing");
  expect(billing).toMatchObject({
    availableUsdMicros: truth.grantedUsdMicros - usdMicros,
    reservedUsdMicros: 0,
    monthSpendUsdMicros: usdMicros,
    credits: { available: truth.grantedCredits - credits, reserved: 0, monthSpent: credits },
  });
  const { data: dollars } = (await all.get("/credits")).json;
  expect(dollars).toEqual({
    total_credits: truth.grantedUsdMicros / 1_000_000,
    total_usage: usdMicros / 1_000_000,
  });
  for (const [unit, available] of [
    ["usd_micros", billing.availableUsdMicros],
    ["credits", billing.credits.available],
  ] as const) {
    const own = entries.filter((entry) => entry.unit === unit);
    for (const [i, { balanceAfter, amount }] of own.entries()) {
      expect(balanceAfter - amount).toBe(own[i + 1]?.balanceAfter ?? 0);
    }
    expect(own[0]?.balanceAfter ?? 0).toBe(available);
  }
  expect(linesOf((await all.get("/billing/entries?format=jsonl")).text)).toEqual(entries);
  const csv = csvRows((await all.get("/billing/entries?format=csv")).text);
  expect(csv.map(({ id, amount, balanceAfter }) => [id, amount, balanceAfter])).toEqual(
    entries.map(({ id, amount, balanceAfter }) => [id, `${amount}`, `${balanceAfter}`]),
  );

  const exported = ["ledger", "export", all.accountId, "--format"];
  // An operator's files have more of each line.
  const withMore = (lines: readonly object[]) => lines.map((line) => expect.objectContaining(line));
  expect(linesOf(await host.command([...exported, "jsonl"]))).toEqual(withMore(entries));
  expect(csvRows(await host.command([...exported, "csv"]))).toEqual(withMore(csv));

  // The clock of the process may be in the next day already, and the command has its own.
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  const days = ["--to", tomorrow, "--by", "day", "model", "upstream"];
  const margins = ["ledger", "margin", all.accountId, ...days];
  const told: Document[] = JSON.parse(await host.command([...margins, "--json"])).margins;
  const costed = ended.filter(({ upstreamCost }) => upstreamCost !== undefined);
  expect(sumOf(told, "requests")).toBe(ended.length);
  expect(sumOf(told, "spentUsdMicros")).toBe(usdMicros);
  expect(sumOf(told, "spentCredits")).toBe(credits);
  expect(sumOf(told, "costedRequests")).toBe(costed.length);
  expect(sumOf(told, "costedUsdMicros")).toBe(sumOf(costed, "usdMicros"));
  expect(sumOf(told, "upstreamCostUsdMicros")).toBe(
    costed.reduce((sum, { upstreamCost }) => sum + Number(upstreamCost), 0),
  );

  for (const key of keys) {
    const spent = sumOf(
      ended.filter(({ keyId }) => keyId === key.keyId),
      "usdMicros",
    );
    const { data } = (await key.get("/key")).json;
    expect(data).toMatchObject({ spentUsdMicros: spent, spentMonthUsdMicros: spent });
    expect(data.usage_weekly * 1_000_000).toBeCloseTo(spent, 3);
  }

  expect((await all.get("/billing/holds")).json.data).toEqual([]);
  await compareAudit(host, { all, truth });
  return truth;
}

/** Compares the account's figures in `genmesh ledger audit` with the journal. */
async function compareAudit(
  host: Pick<HostProcess, "billing">,
  { all: { accountId }, truth }: { all: Pick<Caller, "accountId">; truth: Truth },
): Promise<void> {
  for await (const { finding } of host.billing.auditLedger({ totals: true })) {
    if (finding.case === "totals") {
      const { wallet, keys, accountId: whose } = finding.value;
      const isUsd = wallet?.unit === Unit.USD_MICROS;
      const granted = isUsd ? truth.grantedUsdMicros : truth.grantedCredits;
      // No hold is left, and all charges were made this month.
      const own = truth.ended.filter((one) => isCredits(one) !== isUsd);
      const spent = BigInt(sumOf(own, isUsd ? "usdMicros" : "credits"));
      const available = BigInt(granted) - spent;
      const month = { reserved: 0n, monthSpent: spent, spent, available };
      expect(whose).toBe(accountId);
      expect(wallet).toMatchObject({ ...month, granted: BigInt(granted), spendable: available });
      const expected = [...Map.groupBy(own, ({ keyId }) => keyId)].map(([keyId, list]) => {
        const requests = BigInt(list.length);
        const charged = BigInt(sumOf(list, isUsd ? "usdMicros" : "credits"));
        return [keyId, requests, charged, requests, charged];
      });
      const told = keys.map((key) => [
        ...[key.keyId, key.requests, key.spent, key.rollupRequests, key.rollupSpent],
      ]);
      expect(told.sort()).toEqual(expected.sort());
    } else expect(finding).toMatchObject({ case: "summary", value: { differences: 0n } });
  }
}

function isCredits({ kind }: Pick<Ended, "kind">): boolean {
  return kind === "image" || kind === "video";
}

async function askUsage(caller: Caller, query: string, by: readonly string[]) {
  const found = new Map<string, Sums>();
  for (let page = ""; ; ) {
    const { status, json, text } = await caller.get(`/usage?${query}&limit=31${page}`);
    if (status !== 200) throw new Error(text);
    for (const { start_time, results } of json.data) {
      for (const one of results) found.set(nameOf(start_time, one, by), pickSums(one));
    }
    if (!json.has_more) return found;
    page = `&page=${json.next_page}`;
  }
}

async function askUsageCsv(caller: Caller, query: string, by: readonly string[]) {
  const { text } = await caller.get(`/usage?${query}&format=csv`);
  return new Map<string, Sums>(
    csvRows(text).map((row) => [nameOf(Number(row.start_time), row, by), pickSums(row)]),
  );
}

function pickSums(one: Document): Sums {
  return Object.fromEntries(sumNames.map((name) => [name, Number(one[name])])) as unknown as Sums;
}

function linesOf(jsonl: string): Document[] {
  return jsonl
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Rows of a CSV file in which no cell has a comma. */
function csvRows(text: string): Record<string, string>[] {
  const [head = "", ...lines] = text.trim().split("\r\n");
  const names = head.split(",");
  return lines.map((line) =>
    Object.fromEntries(line.split(",").map((cell, i) => [names[i] ?? "", cell])),
  );
}

/** All pages of a list. */
export async function pagesOf(caller: Caller, path: string): Promise<Document[]> {
  const all = [];
  for (let after = ""; ; ) {
    const { status, json, text } = await caller.get(`${path}${after}`);
    if (status !== 200) throw new Error(text);
    all.push(...json.data);
    if (!json.has_more) return all;
    after = `&after=${json.nextCursor}`;
  }
}

function sumOf<K extends string>(rows: readonly Record<K, number>[], name: K): number {
  return rows.reduce((sum, row) => sum + row[name], 0);
}
