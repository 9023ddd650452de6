import type { Page } from "playwright-core";
import { visit } from "./screens.ts";

/** The time that a reader waits for a list, as medians in ms. */
export interface ListTime {
  screen: string;
  /** From the request to the last byte of its answer. */
  apiMs: number;
  /** The rest of the time from the click to the visible list: the page's own time. */
  pageMs: number;
  /** The same at the first visit, which loads the screen's code. */
  firstMs: number;
}

/** The visits of each screen after the first. */
const rounds = 3;

/** Opens each screen by its link in the navigation, from the screen `home`, and measures the time until its list is visible. */
export async function listTimes(
  page: Page,
  home: string,
  screens: readonly string[],
): Promise<ListTime[]> {
  const found: ListTime[] = [];
  for (const screen of screens) {
    await visit(page, new URL(page.url()).origin, home);
    const first = await visitBy(page, screen);
    const later: Visit[] = [];
    for (let round = 0; round < rounds; round++) {
      await visitBy(page, home);
      later.push(await visitBy(page, screen));
    }
    found.push({
      screen: screen.replace("/console/", ""),
      apiMs: medianOf(later.map(({ apiMs }) => apiMs)),
      pageMs: medianOf(later.map(({ totalMs, apiMs }) => totalMs - apiMs)),
      firstMs: first.totalMs - first.apiMs,
    });
  }
  return found;
}

interface Visit {
  apiMs: number;
  totalMs: number;
}

/** By the page's own marks: the resource timing of its requests, and the frame in which nothing waits any longer. */
function visitBy(page: Page, path: string): Promise<Visit> {
  return page.evaluate(async (path) => {
    const link = document.querySelector<HTMLAnchorElement>(`nav a[href="${path}"]`);
    if (!link) throw new Error(`no link leads to ${path}`);
    performance.clearResourceTimings();
    const begunMs = performance.now();
    link.click();
    const asked = () =>
      performance
        .getEntriesByType("resource")
        .filter(({ name, startTime }) => name.includes("/console/api/") && startTime >= begunMs);
    const waits = '.waiting, [aria-busy="true"], .loading-line.is-on';
    const isDrawn = () =>
      location.pathname === path && asked().length > 0 && !document.querySelector(waits);
    while (!isDrawn()) {
      if (performance.now() - begunMs > 15_000) {
        const waiting = document.querySelector(waits)?.outerHTML.slice(0, 200);
        throw new Error(`${path} is not drawn: ${location.pathname} ${asked().length} ${waiting}`);
      }
      await new Promise(requestAnimationFrame);
    }
    const totalMs = performance.now() - begunMs;
    const requests = asked() as PerformanceResourceTiming[];
    const from = Math.min(...requests.map(({ startTime }) => startTime));
    const to = Math.max(...requests.map(({ responseEnd }) => responseEnd));
    return { apiMs: to - from, totalMs };
  }, path);
}

function medianOf(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** A line of Markdown for each. */
export function timesTable(times: readonly ListTime[]): string {
  const lines = times.map(({ screen, apiMs, pageMs, firstMs }) =>
    ["", screen, ...[apiMs, pageMs, firstMs].map((ms) => ms.toFixed(0)), ""].join(" | ").trim(),
  );
  return [
    "| list | API, ms | page, ms | page at the first visit, ms |",
    "| --- | --- | --- | --- |",
    ...lines,
  ].join("\n");
}
