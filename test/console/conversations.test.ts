import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { beforeEach, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

const path = "/console/playground?kind=chat&model=chat-1";

/** A server whose answers stop in the middle. Their connections stay open until it breaks them off. */
async function startBreaking(): Promise<AsyncDisposable & { url: string; breakOff(): void }> {
  const delta = { type: "response.output_text.delta", delta: "Half an ans" };
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify(delta)}\n\n`);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    breakOff: () => server.closeAllConnections(),
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

describe.skipIf(chromiumPath === undefined)("conversations in the console's playground", () => {
  const on = startConsole();
  let caller: Caller;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeEach(async () => {
    caller = await on.world.caller();
    opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, caller.key);
    await visit(page, on.origin, path);
  });

  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const answers = () => page.getByRole("article", { name: "The model" });
  const said = () => page.getByRole("article", { name: "You" });
  const say = async (text: string) => {
    await page.getByLabel("Message").fill(text);
    await page.keyboard.press("Enter");
  };
  /** Waits for the last answer's end. */
  const answered = async (count: number) => {
    await page
      .locator(".answer .charge")
      .nth(count - 1)
      .waitFor();
  };
  const kept = () =>
    page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          const opening = indexedDB.open("genmesh", 1);
          opening.onsuccess = () => {
            const counting = opening.result.transaction("kept").objectStore("kept").count();
            counting.onsuccess = () => resolve(counting.result);
          };
        }),
    );

  test("a cut answer says so and keeps its words; it is tried again, edited, copied", async () => {
    await using breaking = await startBreaking();
    await page.route("**/v1/responses", (route) => route.continue({ url: breaking.url }));
    await say("Hello there");
    // A browser drops bytes that the page has not read when their connection breaks.
    await answers().getByText("Half an ans").waitFor();
    breaking.breakOff();
    await answers().getByText("The connection broke while the answer came.").waitFor();
    await answers().getByText("Half an ans").waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });
    await button("Copy answer").click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("Half an ans");
    await page.unrouteAll({ behavior: "wait" });
    await button("Try again").click();
    await answered(1);
    expect(await answers().count()).toBe(1);
    await button("Edit message").click();
    expect(await page.getByLabel("Message").inputValue()).toBe("Hello there");
    expect(await answers().count()).toBe(0);
  });

  test("a refused message keeps its text, and names no upstream", async () => {
    await page.route("**/v1/responses", (route) => route.abort());
    await say("Anyone there?");
    await answers().getByText("The service could not be reached.").waitFor();
    await said().getByText("Anyone there?").waitFor();
    await button("Edit message").click();
    expect(await page.getByLabel("Message").inputValue()).toBe("Anyone there?");
  });

  test("they outlast a reload, are listed, and are gone after signing out", async () => {
    await say("Hello there");
    await answered(1);
    await button("New conversation").click();
    await say("A second one");
    await answered(1);
    await page.reload();
    await said().getByText("A second one").waitFor();
    await page.locator(".earlier").getByRole("button", { name: "Hello there" }).click();
    await said().getByText("Hello there").waitFor();
    expect(await lookFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });
    expect(await kept()).toBe(2);
    await button("Sign out").click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await kept()).toBe(0);
    await signIn(page, on.origin, (await on.world.caller()).key);
    await visit(page, on.origin, path);
    expect(await page.getByText("Hello there").count()).toBe(0);
  });

  test("nothing is kept where the reader says so", async () => {
    await say("Hello there");
    await answered(1);
    await page.getByLabel("Keep conversations in this browser").uncheck();
    await expect.poll(kept).toBe(0);
    await say("And another thing");
    await answered(2);
    expect(await kept()).toBe(0);
    await page.reload();
    await page.getByText(/^Say something to/).waitFor();
  });

  test("another key of the same browser does not see them", async () => {
    await say("Hello there");
    await answered(1);
    await page.context().clearCookies();
    await signIn(page, on.origin, (await on.world.caller()).key);
    await visit(page, on.origin, path);
    await page.getByText(/^Say something to/).waitFor();
    expect(await page.getByText("Hello there").count()).toBe(0);
  });
});
