import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, openConsoleMs, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

const adminToken = "operator-token-of-the-reasons-tests";
const upstreamWords = "The key sk-upstream is not known at secret-vendor.";

describe.skipIf(chromiumPath === undefined)("why a request failed, in the console", () => {
  const on = startConsole({ env: { GENMESH_ADMIN_TOKEN: adminToken } });
  let caller: Caller;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;
  let requestId: string;

  beforeAll(async () => {
    caller = await on.world.caller();
    on.world.play({ kind: "status", status: 401, message: upstreamWords });
    const failed = await caller.post("/responses", { model: "scripted", input: "A prompt" });
    expect(failed.json.error.code).toBe("model_request_failed");
    requestId = failed.headers.get("x-request-id") ?? "";
    opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, caller.key);
  }, openConsoleMs);

  const check = async () => {
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
    expect(await page.content()).not.toContain("secret-vendor");
  };

  test("its record, the list and the overview say it, linked, in our own words", async () => {
    await visit(page, on.origin, `/console/requests?id=${requestId}`);
    const why = page.locator("section .error");
    expect(await why.textContent()).toContain("The model did not complete the request.");
    expect(await why.locator("code").textContent()).toBe("model_request_failed");
    await check();
    await visit(page, on.origin, "/console/requests?status=failed");
    await page.getByRole("cell").getByText("model_request_failed").waitFor();
    await check();
    await visit(page, on.origin, "/console/");
    const errors = page.locator("section").filter({ hasText: "Last errors" });
    await errors.getByText("The model did not complete the request.").waitFor();
    await errors.locator("li a").click();
    await why.getByText("model_request_failed").waitFor();
  });
});
