import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { chromiumPath, openPage } from "../support/browser.ts";
import { signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

/** A server with one answer, which comes in the pieces that the test says. */
async function startPieces() {
  let response: ServerResponse | undefined;
  const asked = Promise.withResolvers<void>();
  const server = createServer((_request, answer) => {
    response = answer.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    asked.resolve();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const write = (event: object) => response?.write(`data: ${JSON.stringify(event)}\n\n`);
  return {
    url: `http://127.0.0.1:${port}/`,
    asked: asked.promise,
    say: (delta: string) => write({ type: "response.output_text.delta", delta }),
    end(text: string) {
      const output = [
        { type: "message", role: "assistant", content: [{ type: "output_text", text }] },
      ];
      const usage = { input_tokens: 1, output_tokens: 1, cost: 0, costUsdMicros: 1 };
      const done = { id: "resp_1", status: "completed", output, usage };
      write({ type: "response.completed", response: done });
      response?.end();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

interface Work {
  /** How often an element was made for each link, by its address. */
  links: Record<string, number>;
  /** How often the browser's store was read as a whole. */
  loads: number;
  /** How often a text with the last question was made into JSON. */
  requests: number;
}

/** Counts the work of the page from its first script on. */
async function countWork(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const work: Work = { links: {}, loads: 0, requests: 0 };
    const { parse } = URL;
    URL.parse = (address, base) => {
      const link = String(address);
      if (link.startsWith("https://link.test/")) work.links[link] = (work.links[link] ?? 0) + 1;
      return parse.call(URL, address, base);
    };
    const { getAll } = IDBObjectStore.prototype;
    IDBObjectStore.prototype.getAll = function (...asked) {
      work.loads += 1;
      return getAll.apply(this, asked);
    };
    const { stringify } = JSON;
    JSON.stringify = ((...asked: Parameters<typeof stringify>) => {
      const text: string | undefined = stringify(...asked);
      if (text?.includes("The question of the test")) work.requests += 1;
      return text;
    }) as typeof stringify;
    Object.assign(window, { work });
  });
}

const workOf = (page: Page) => page.evaluate(() => (window as unknown as { work: Work }).work);

const pieces = 40;
const pieceLength = 5_000;
const hostile =
  "- *a* **b** [c](https://d.test/)\n  - x\n    1. y\n\n|a|b|\n|-|-|\n|1|2|\n\n> > q\n\n";

describe.skipIf(chromiumPath === undefined)("an answer that grows for long", () => {
  const on = startConsole();

  test("each block of it is made a few times, and its request and the store are read once a turn", async () => {
    await using server = await startPieces();
    const caller = await on.world.caller();
    const { page, faults, close } = await openPage(on.browser);
    page.setDefaultTimeout(30_000);
    await countWork(page);
    await signIn(page, on.origin, caller.key);
    await visit(page, on.origin, "/console/playground?kind=chat&model=chat-1");
    await page.route("**/v1/responses", (route) => route.continue({ url: server.url }));
    await page.getByLabel("Message").fill("The question of the test");
    await page.keyboard.press("Enter");
    await server.asked;
    const before = await workOf(page);
    let text = "";
    for (let piece = 0; piece < pieces; piece += 1) {
      const end = `[piece${piece}](https://link.test/${piece}) end${piece}\n\n`;
      const body = hostile.repeat(Math.ceil(pieceLength / hostile.length));
      const said = body.slice(0, pieceLength - end.length).replace(/\n.*$/, "\n\n") + end;
      text += said;
      server.say(said);
      await page.locator(".answer").getByText(`end${piece}`).last().waitFor();
    }
    const grown = await workOf(page);
    expect(text.length).toBeGreaterThan(150_000);
    const made = Object.values(grown.links);
    expect(made.length).toBeGreaterThan(8);
    expect(Math.max(...made)).toBeLessThanOrEqual(3);
    expect(grown.requests - before.requests).toBeLessThanOrEqual(2);
    server.end(text);
    await page.locator(".answer .charge").waitFor();
    const ended = await workOf(page);
    expect(Math.max(...Object.values(ended.links))).toBeLessThanOrEqual(4);
    expect(ended.loads).toBe(before.loads);
    // The end of the answer is not formatted, and is shown.
    const shown = await page.locator(".answer .markdown").innerText();
    expect(shown).toContain(`[piece${pieces - 1}](https://link.test/${pieces - 1})`);
    expect(faults).toEqual([]);
    await close();
  });
});
