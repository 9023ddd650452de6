import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import type { Document } from "../e2e/media-world.ts";
import { groupings, pagesOf, type Truth, usageOf } from "../e2e/usage-views.ts";
import { until } from "../support/until.ts";
import { untilLoaded, visit } from "./screens.ts";

/** A row of a table on the screen: its name, and its exact figures by column. */
export interface ShownRow {
  head: string;
  /** The full name, where the row shows a short one. */
  title: string;
  cells: Record<string, { text: string; value: number | undefined }>;
}

/** The rows of a table on the page, including its foot. */
export function rowsOf(page: Page, table: string): Promise<ShownRow[]> {
  return page.locator(`${table} tr`).evaluateAll((rows) =>
    rows.flatMap((row) => {
      const head = row.querySelector("th[scope=row]");
      if (!head) return [];
      const cells = [...row.querySelectorAll("td")].map((cell) => {
        const value = cell.querySelector("data")?.getAttribute("value");
        const exact = value === null || value === undefined ? undefined : Number(value);
        // The meaning of a status is a tip of its own.
        const shown = cell.cloneNode(true) as Element;
        for (const tip of shown.querySelectorAll("[popover]")) tip.remove();
        return [cell.dataset.label ?? "", { text: shown.textContent ?? "", value: exact }] as const;
      });
      return [
        {
          head: head.textContent?.trim() ?? "",
          title: head.querySelector("code[title]")?.getAttribute("title") ?? "",
          cells: Object.fromEntries(cells),
        },
      ];
    }),
  );
}

/** The rows of every page of a list, by its button for the next one. */
export async function allRows(page: Page, origin: string, path: string): Promise<ShownRow[]> {
  await visit(page, origin, path);
  const rows: ShownRow[] = [];
  for (;;) {
    rows.push(...(await rowsOf(page, "table")));
    const next = page.getByRole("button", { name: "Next" });
    if ((await next.count()) === 0 || (await next.isDisabled())) return rows;
    const answered = page.waitForResponse((response) => response.url().includes("after="));
    await next.click();
    await answered;
    await untilLoaded(page);
  }
}

/** Compares the tables of usage, requests and billing with the journal and the API, to the last page. */
export async function compareConsole(
  page: Page,
  origin: string,
  { all, truth, fromSeconds }: { all: Caller; truth: Truth; fromSeconds: number },
): Promise<void> {
  const keys = await until("the keys", async () => {
    const { status, json } = await all.get("/keys?limit=100&include_disabled=true");
    return status === 200 && json.data;
  });
  const names = new Map<string, string>(keys.map((key: Document) => [key.id, key.name || key.id]));
  const shownOf = (by: string, value: string) =>
    by === "api_key_id" ? (names.get(value) ?? value) : value;

  for (const by of groupings) {
    await visit(page, origin, `/console/usage?range=7d&by=${by}`);
    const table = "section:has(h2:text-is('In all')) table";
    const expected = new Map<string, ReturnType<typeof emptyFigures>>();
    for (const [name, sums] of usageOf(truth, 7 * daySeconds * 1_000, [by])) {
      const value = name.split(" ").slice(1).join("");
      for (const head of [shownOf(by, value), "Total"]) {
        const before = expected.get(head) ?? emptyFigures();
        expected.set(head, {
          Requests: before.Requests + sums.num_model_requests,
          "Input tokens": before["Input tokens"] + sums.input_tokens,
          "Cache writes": before["Cache writes"] + sums.input_cache_write_tokens,
          "For long": before["For long"] + sums.input_cache_write_long_tokens,
          "Audio in": before["Audio in"] + sums.input_audio_tokens,
          "Images in": before["Images in"] + sums.input_image_tokens,
          "Output tokens": before["Output tokens"] + sums.output_tokens,
          "Audio out": before["Audio out"] + sums.output_audio_tokens,
          "Images out": before["Images out"] + sums.output_image_tokens,
          "Tool calls": before["Tool calls"] + sums.tool_calls,
          Images: before.Images + sums.images,
          Characters: before.Characters + sums.characters,
          Credits: before.Credits + sums.spentCredits,
          Dollars: before.Dollars + sums.spentUsdMicros,
        });
      }
    }
    // Keys' names come with an answer of their own. Until then the table has their ids.
    for (const head of expected.keys()) {
      await page.locator(table).getByText(head, { exact: true }).first().waitFor();
    }
    const rows = await rowsOf(page, table);
    const shown = new Map(rows.map(({ head, cells }) => [head, figuresOf(cells)]));
    expect(shown, `by ${by}`).toEqual(expected);
  }

  for (const [width, seconds] of Object.entries({ "1h": 3_600, "1d": daySeconds })) {
    await visit(page, origin, `/console/usage?range=7d&width=${width}&figure=usd`);
    const rows = await rowsOf(page, "section[aria-label='Figures of the chart'] table");
    const dollars = [...usageOf(truth, seconds, [])]
      .map(([name, sums]) => [Number(name.split(" ")[0]), sums.spentUsdMicros] as const)
      .filter(([start, spent]) => start >= fromSeconds && spent !== 0)
      .sort(([a], [b]) => b - a);
    expect(
      rows.map(({ cells }) => cells.Total?.value),
      `by ${width}`,
    ).toEqual(dollars.map(([, spent]) => spent));
  }

  const requests = await pagesOf(all, "/requests?limit=100");
  const shownRequests = await allRows(page, origin, "/console/requests");
  expect(
    shownRequests.map(({ title, cells }) => [title, cells.Status?.text, cells.Cost?.value]),
  ).toEqual(
    // A failed request has its code below its status.
    requests.map(({ id, status, error, costUsdMicros, creditsCharged }) => [
      ...[id, status.replaceAll("_", " ") + (error?.code ?? ""), costUsdMicros || creditsCharged],
    ]),
  );

  const entries = await pagesOf(all, "/billing/entries?limit=100");
  const shownEntries = await allRows(page, origin, "/console/billing");
  expect(
    shownEntries.map(({ cells }) => [cells.Amount?.value, cells["Balance after"]?.value]),
  ).toEqual(entries.map(({ amount, balanceAfter }) => [amount, balanceAfter]));
}

const daySeconds = 86_400;

const emptyFigures = () => ({
  ...{ Requests: 0, "Input tokens": 0, "Output tokens": 0, Images: 0, Characters: 0 },
  ...{ "Cache writes": 0, "For long": 0, "Audio in": 0, "Images in": 0 },
  ...{ "Audio out": 0, "Images out": 0, "Tool calls": 0, Credits: 0, Dollars: 0 },
});

/** The figures of a row. A column without values is not shown. */
function figuresOf(cells: ShownRow["cells"]) {
  const figures = emptyFigures();
  for (const name of Object.keys(figures) as (keyof typeof figures)[]) {
    figures[name] = cells[name]?.value ?? 0;
  }
  return figures;
}
