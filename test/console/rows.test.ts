import type { Page } from "playwright-core";
import { beforeEach, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";
import { everyScope } from "./used-world.ts";

describe.skipIf(chromiumPath === undefined)("rows that say what they are", () => {
  const on = startConsole();
  let caller: Caller;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeEach(async () => {
    const first = await on.world.caller({ credits: 1_000n });
    caller = await on.world.withKey(first, { name: "website", scopes: everyScope });
    opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, caller.key);
  });

  test("a request has its key's name, the first words of its prompt, and its status in words", async () => {
    on.world.play();
    await visit(page, on.origin, "/console/playground?kind=chat&model=scripted");
    await page.getByLabel("Message", { exact: true }).fill("Why is the sea salty?");
    await page.keyboard.press("Enter");
    await page.locator(".answer .charge").waitFor();
    await visit(page, on.origin, "/console/requests");
    const row = page.getByRole("row").filter({ hasText: "Why is the sea salty?" });
    await row.getByText("website").waitFor();
    await row.getByRole("button", { name: "completed" }).hover();
    await page.getByRole("tooltip", { name: "It has its whole answer." }).waitFor();
    await page.getByRole("columnheader", { name: /^Time \(.+\)$/ }).waitFor();
    const model = page.getByLabel("Model", { exact: true });
    await model.focus();
    const offered = () =>
      model.evaluate((input) =>
        [...((input as HTMLInputElement).list?.options ?? [])].map(({ value }) => value),
      );
    await expect.poll(offered).toContain("scripted");
    await expect
      .poll(() =>
        page
          .getByLabel("Key", { exact: true })
          .evaluate((input) =>
            [...((input as HTMLInputElement).list?.options ?? [])].map(({ label }) => label),
          ),
      )
      .toContain("website");
    expect(await lookFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });
    await row.getByRole("link").first().click();
    await page.getByText("It has its whole answer.").waitFor();
    expect(opened.faults).toEqual([]);
  });

  test("a cancelled job is cancelled, not failed", async () => {
    const begun = await caller.post("/videos/generations", {
      ...{ model: "svc-video-1-5", prompt: "Waves", seconds: 15, resolution: "1080p" },
    });
    const { id } = begun.json;
    await caller.post(`/videos/generations/${id}/cancel`, {});
    await visit(page, on.origin, `/console/jobs?id=${id}`);
    const job = page.getByRole("region", { name: "The job" });
    await job.getByText("Its caller cancelled it. That is no failure.").waitFor();
    expect(await job.locator(".error").count()).toBe(0);
    expect(await job.locator(".badge").first().textContent()).toBe("cancelled");
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });
});
