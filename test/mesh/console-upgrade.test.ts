import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lookFindings, openConsoleMs, signIn, untilBuilt } from "../console/screens.ts";
import { openTab, type Tab } from "../console/tab.ts";
import { browserNote, chromiumPath, openBrowser } from "../support/browser.ts";
import { startTurnsFront, type TurnsFront } from "../support/turns-front.ts";
import { anotherTitle, checkoutOfAnotherConsole } from "./another-console.ts";
import { describeMesh } from "./servers.ts";
import { type MeshCaller, type MeshWorld, startMeshWorld } from "./world.ts";

/** Milliseconds. A process of the new release starts from its sources, and builds its console. */
const upgradeMs = 200_000;
/** Milliseconds in which a tab has tried again: its pauses are 10 s at most. */
const againMs = 60_000;
const halfWritten = { message: "A half-written thought", prompt: "A half-described image" };

describe.skipIf(chromiumPath === undefined)(
  `an upgrade under an open tab${browserNote}`,
  async () => {
    await describeMesh("of two gateways, one after the other", () => {
      const stack = new AsyncDisposableStack();
      let world: MeshWorld;
      let front: TurnsFront;
      let browser: Browser;
      let caller: MeshCaller;
      let tab: Tab;
      let page: Page;
      let next: string;
      let [first, second] = ["", ""];

      beforeAll(async () => {
        front = stack.use(await startTurnsFront());
        const env = { GENMESH_DRAIN_MS: "2000", GENMESH_PUBLIC_URL: front.origin };
        const started = await startMeshWorld({ replicas: "1,gateway=2", env });
        if (!started) throw new Error("there is no server for one of the stores");
        world = stack.use(started);
        [first = "", second = ""] = world.gateways;
        front.gateways = world.gateways;
        next = await checkoutOfAnotherConsole(stack);
        caller = await world.caller({ usdMicros: 1_000_000n, credits: 100n });
        await untilBuilt(front.origin);
        browser = await openBrowser();
        stack.defer(() => browser.close());
        tab = await openTab(browser);
        page = tab.page;
      }, openConsoleMs + upgradeMs);
      afterAll(() => stack.disposeAsync());

      const answers = () => page.getByRole("article", { name: "The model" });
      const message = () => page.getByLabel("Message", { exact: true });
      const title = (text: string) => page.getByRole("heading", { level: 1, name: text });
      const notLoaded = "This screen could not be loaded";
      /** Replaces a gateway by one of the new release. Its callers go to the other meanwhile. */
      const upgrade = async (turn: 0 | 1) => {
        const gateway = world.of("gateway")[turn];
        expect(await gateway?.stop()).toBe(0);
        await gateway?.start(next);
        await untilBuilt(gateway?.url ?? "");
      };
      const stays = async () => {
        await tab.go("Playground");
        await expect.poll(() => message().inputValue()).toBe(halfWritten.message);
        await answers().getByText("Hello from upstream.").first().waitFor();
        await page.getByRole("button", { name: "Image", exact: true }).click();
        expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe(
          halfWritten.prompt,
        );
        await page.getByRole("button", { name: "Chat", exact: true }).click();
        await message().waitFor();
      };

      test("a tab has a conversation and half-written forms", async () => {
        await tab.signIn(front.origin, caller.key, "Overview");
        await tab.go("Playground");
        await message().fill("Hello there");
        await page.keyboard.press("Enter");
        await answers().locator(".charge").waitFor();
        await page.getByRole("button", { name: "Image", exact: true }).click();
        await page.getByLabel("Prompt", { exact: true }).fill(halfWritten.prompt);
        await page.getByRole("button", { name: "Chat", exact: true }).click();
      });

      test(
        "an answer that the drain cuts says so, and is tried again at the other gateway",
        async () => {
          const rest = Promise.withResolvers<void>();
          world.text.next({ kind: "ok", restAfter: rest.promise });
          front.gateways = [first];
          await message().fill("A long question");
          await page.keyboard.press("Enter");
          await answers().nth(1).getByText("Hello").waitFor();
          await message().fill(halfWritten.message);
          front.gateways = [second];
          const upgraded = upgrade(0);
          await answers().nth(1).getByRole("alert").waitFor();
          expect(await answers().nth(1).textContent()).toContain("Hello");
          rest.resolve();
          await page.getByRole("button", { name: "Try again" }).click();
          await answers().nth(1).getByText("Hello from upstream.").waitFor();
          await upgraded;
          await stays();
        },
        upgradeMs,
      );

      test("a screen that the new gateway lacks says so, and comes from the old one", async () => {
        front.gateways = [first];
        await page.getByRole("link", { name: "Usage", exact: true }).click();
        await title(notLoaded).waitFor();
        await page.getByText("The service has a newer version of the console.").waitFor();
        expect(await lookFindings(page)).toEqual([]);
        await page.setViewportSize({ width: 1280, height: 900 });
        await stays();
        await page.getByRole("link", { name: "Usage", exact: true }).click();
        await title(notLoaded).waitFor();
        // Nobody presses anything: every second try reaches the old gateway.
        front.gateways = [first, second];
        await title("Usage").waitFor({ timeout: againMs });
      });

      test.each([
        ["the new gateway with files of the old one", 0, 1],
        ["the old gateway with files of the new one", 1, 0],
      ])("a page of %s says so, and is loaded again by itself", async (_, ofPage, ofFiles) => {
        // A browser that has nothing of either build.
        const other = await (await browser.newContext()).newPage();
        front.gateways = [world.gateways[ofPage] ?? ""];
        front.assetsFrom = world.gateways[ofFiles];
        await other.goto(`${front.origin}/console/`);
        const words = other.getByRole("alert").getByText("The console could not be loaded");
        await words.waitFor();
        front.gateways = [first, second];
        front.assetsFrom = undefined;
        await other.getByRole("heading", { name: "Sign in" }).waitFor({ timeout: againMs });
        await words.waitFor({ state: "detached", timeout: againMs });
        await other.context().close();
      });

      test(
        "after the second one, the tab offers the new build, and takes everything along",
        async () => {
          front.gateways = [first];
          await upgrade(1);
          front.gateways = [first, second];
          await page.getByRole("link", { name: "Billing", exact: true }).click();
          await title(notLoaded).waitFor();
          await stays();
          expect(await page.title()).not.toContain(anotherTitle);
          await page.getByRole("button", { name: "Load it" }).click();
          await expect.poll(() => page.title()).toContain(anotherTitle);
          await stays();
          await tab.go("Billing");
          await page.getByText("Balance").first().waitFor();
          expect(tab.faults).toEqual([]);
          // A sign-in at the new build begins with nothing of that.
          await tab.press("Sign out");
          await title("Sign in").waitFor();
          expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
          await signIn(page, front.origin, caller.key);
        },
        upgradeMs,
      );
    });
  },
);
