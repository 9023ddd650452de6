import type { Page } from "playwright-core";
import { beforeEach, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

const path = "/console/playground?kind=chat&model=legacy";

function eventsOf(text: string): Record<string, unknown>[] {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...{ id: "c1", object: "chat.completion.chunk", created: 1, model: "up" },
    choices: [{ index: 0, delta, finish_reason }],
  });
  const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 };
  return [chunk({ content: text }), chunk({}, "stop"), { ...chunk({}), choices: [], usage }];
}

describe.skipIf(chromiumPath === undefined)("odd answers and turns in the playground", () => {
  const on = startConsole();
  let caller: Caller;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeEach(async () => {
    caller = await on.world.caller();
    opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(20_000);
    await signIn(page, on.origin, caller.key);
    await visit(page, on.origin, path);
  });

  const answers = (text: string) => on.world.play({ kind: "events", events: eventsOf(text) });
  const say = async (text: string) => {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await page.keyboard.press("Enter");
  };
  const charged = (place = 0) => page.locator(".answer .charge").nth(place).waitFor();
  const choose = (label: string, id: string) =>
    page.getByLabel(label, { exact: true }).selectOption(id);

  test("lists that begin at 0, and tasks with room between them", async () => {
    answers("0. zero\n1. one\n\n---\n\n- [x] done\n\n- [ ] open\n");
    await say("A list");
    await charged();
    const shown = page.locator(".answer .markdown");
    expect(await shown.locator("ol").getAttribute("start")).toBe("0");
    expect(await shown.locator("ul > li").allTextContents()).toEqual(["☑ done", "☐ open"]);
    expect(await lookFindings(page)).toEqual([]);
  });

  test("a second model is not chosen while an answer comes, and misses no message", async () => {
    await page.route("**/v1/chat/completions", () => undefined);
    await say("Slowly");
    const versus = page.getByLabel("Compare with");
    await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
    expect(await versus.isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.unrouteAll();
    answers("One.");
    await choose("Compare with", "chat-1");
    await say("To both");
    await charged(1);
    const names = page.locator(".pair h3");
    const [first] = await names.allTextContents();
    await choose("Model", "chat-1");
    await say("To one");
    await charged(1);
    await choose("Model", "legacy");
    expect(await versus.inputValue()).toBe("");
    expect(await page.locator(".pair").count()).toBe(0);
    await choose("Compare with", "chat-1");
    await say("To both again");
    await charged(3);
    expect(await page.locator(".pair").count()).toBe(1);
    await choose("Model", "scripted");
    // The answer keeps the name of its model.
    expect([first, "legacy"]).toContain(await names.first().textContent());
  });

  test("words that an office program copies with their picture are pasted as words", async () => {
    await page.getByLabel("Message", { exact: true }).focus();
    const wasTaken = await page.locator("textarea[required]").evaluate((element) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", "12\t30");
      clipboardData.items.add(new File([new Uint8Array(8)], "image.png", { type: "image/png" }));
      const options = { bubbles: true, cancelable: true, clipboardData };
      return !element.dispatchEvent(new ClipboardEvent("paste", options));
    });
    expect(wasTaken).toBe(false);
    expect(await page.getByText(/image\.png/).count()).toBe(0);
  });

  test("another key that signs in finds its own models, and none of the earlier one's words", async () => {
    const option = page.getByRole("option").filter({ hasText: "svc-video-1-5" });
    const find = async () => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "A screen, a model, or an id" }).fill("svc-video");
    };
    await page.getByLabel("Message", { exact: true }).fill("A secret plan");
    await find();
    await option.waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Requests", exact: true }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    const other = await on.world.withKey(await on.world.caller(), { allowedModels: ["legacy"] });
    await page.locator("input[name=secret]").fill(other.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Requests", level: 1 }).waitFor();
    await find();
    await page.getByText("Nothing has this name.").waitFor();
    expect(await option.count()).toBe(0);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Playground", exact: true }).click();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("");
  });
});
