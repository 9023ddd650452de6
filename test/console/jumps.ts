import type { Page, Route } from "playwright-core";

/** The browser's report of a frame in which something moved. The DOM's types lack it. */
interface LayoutShift extends PerformanceEntry {
  /** The moved share of the window, times the distance as a share of the window. */
  value: number;
  hadRecentInput: boolean;
  sources: { node: Node | null; previousRect: DOMRect; currentRect: DOMRect }[];
}

/** The movements that the user did not cause, since the page began to load. */
export interface Jumps {
  /** The sum over all frames, as the browser measures it. */
  score: number;
  /** The moved elements, each with its old and new place. */
  moved: string[];
}

interface Watching {
  shiftsSeen: PerformanceObserver & { taken: LayoutShift[] };
}

/** Lets every document of the page record movements from its first frame on. */
export async function watchJumps(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const taken: PerformanceEntry[] = [];
    const observer = new PerformanceObserver((list) => void taken.push(...list.getEntries()));
    observer.observe({ type: "layout-shift", buffered: true });
    Object.assign(window, { shiftsSeen: Object.assign(observer, { taken }) });
  });
}

export function jumpsOf(page: Page): Promise<Jumps> {
  return page.evaluate(() => {
    const { shiftsSeen } = window as unknown as Watching;
    const all = [...shiftsSeen.taken, ...(shiftsSeen.takeRecords() as LayoutShift[])];
    const jumps = all.filter(({ hadRecentInput }) => !hadRecentInput);
    const rect = ({ x, y, width, height }: DOMRect) => `${[x, y, width, height].map(Math.round)}`;
    const name = (node: Node | null) =>
      node instanceof Element ? `${node.localName}.${node.className}` : String(node?.nodeName);
    return {
      score: jumps.reduce((sum, { value }) => sum + value, 0),
      moved: jumps.flatMap(({ value, sources }) =>
        sources.map(({ node, previousRect, currentRect }) => {
          const text = node?.textContent?.slice(0, 40);
          const way = `${rect(previousRect)} -> ${rect(currentRect)}`;
          return `${value.toFixed(4)} ${name(node)} “${text}” ${way}`;
        }),
      ),
    };
  });
}

/**
 * Opens a screen and gives it the API's answers one at a time. The first comes when the screen without any answer is painted. Each later
 * one comes when the effect of the one before is painted. `next` chooses among the waiting ones. Answers their number.
 */
export async function openByAnswers(
  page: Page,
  url: string,
  next: (waiting: Route[]) => Route | undefined,
): Promise<number> {
  const waiting: Route[] = [];
  const pattern = /\/console\/api\/(v1|admin)\//;
  const hold = (route: Route) => void waiting.push(route);
  await page.route(pattern, hold);
  await page.goto(url);
  await page.locator("h1").waitFor();
  let answers = 0;
  for (let isDone = false; !isDone; ) {
    await painted(page);
    const route = next(waiting);
    if (route) {
      answers += 1;
      await answer(route);
    } else {
      isDone = answers > 0 && (await isLoaded(page));
    }
  }
  await page.unroute(pattern, hold);
  return answers;
}

/** Lets one answer come as a whole. A stream of events counts as complete when it begins. */
async function answer(route: Route): Promise<void> {
  const request = route.request();
  const responded = request.response();
  await route.continue();
  const response = await responded;
  const isStream = response?.headers()["content-type"]?.startsWith("text/event-stream");
  if (!isStream) await response?.finished();
}

/** Two frames. A change before the first is visible in the second. */
function painted(page: Page): Promise<void> {
  return page.evaluate(async () => {
    for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  });
}

function isLoaded(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const waits = '.waiting, [aria-busy="true"], .loading-line.is-on';
    const pictures = [...document.images].filter((one) => one.loading !== "lazy");
    return !document.querySelector(waits) && pictures.every(({ complete }) => complete);
  });
}
