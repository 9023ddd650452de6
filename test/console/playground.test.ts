import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { oneProcessOnly, startWorld, type World } from "../e2e/world.ts";
import { chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { lookFindings, openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";

/** Real generations of the built-in upstream take a few seconds each, and longer on a busy machine. */
const generationMs = 90_000;

describe.skipIf(chromiumPath === undefined)("the console's playground in a browser", () => {
  oneProcessOnly();

  let world: World;
  let browser: Browser;
  let caller: Caller;
  let origin: string;
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeAll(async () => {
    world = await startWorld();
    origin = new URL(world.baseUrl).origin;
    caller = await world.caller({ credits: 1_000n });
    await untilBuilt(origin);
    browser = await openBrowser();
    opened = await openPage(browser);
    page = opened.page;
    page.setDefaultTimeout(generationMs / 3);
    await signIn(page, origin, caller.key);
  }, openConsoleMs);
  afterAll(async () => {
    await opened?.close();
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  /** axe must find no fault, and the content policy must refuse nothing. Text to copy must not contain a real key. */
  const check = async () => {
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
    const code = (await page.locator("figure.code pre").allTextContents()).join("\n");
    expect(code).not.toContain(caller.key);
    return code;
  };
  const credits = async (): Promise<number> =>
    (await caller.get("/billing")).json.credits.available;
  const charged = () => page.getByText(/^charged/).first();

  test(
    "chat: price before, an answer as it comes, its charge, a tool's result",
    async () => {
      await visit(page, origin, "/console/playground?kind=chat&model=chat-1");
      await page.getByRole("button", { name: "Insert an example" }).click();
      await page.getByLabel("Message").fill("What is the weather in Paris?");
      await page.getByText(/tokens in: .* at most/).waitFor();
      const before = await caller.settled();
      await page.keyboard.press("Enter");
      await page.getByLabel("Result of get_weather").fill('{"celsius": 21}');
      await page.getByRole("button", { name: "Send the result" }).click();
      await page.getByText("The tool get_weather answered").first().waitFor();
      await expect.poll(() => page.locator(".charge").count(), { timeout: 20_000 }).toBe(2);
      const costs = await page
        .locator(".charge data")
        .evaluateAll((all) => all.map((one) => Number((one as HTMLDataElement).value)));
      const after = await caller.settled();
      expect(costs.reduce((sum, cost) => sum + cost, 0)).toBe(before.available - after.available);
      expect(await check()).toContain("function_call_output");
      await page.getByRole("button", { name: "Messages", exact: true }).click();
      expect(await check()).toContain('"type": "tool_result"');
      // The tab keeps the conversation and its tools, which the next test would go on with.
      await page.getByRole("button", { name: "Clear" }).click();
      await page.getByLabel("Tools").fill("");
    },
    generationMs,
  );

  test(
    "chat with a model that has Chat Completions alone: streamed, a tool's result, in one piece",
    async () => {
      const chunk = (delta: object, finish_reason: string | null = null) => ({
        ...{ id: "c1", object: "chat.completion.chunk", created: 1, model: "up" },
        choices: [{ index: 0, delta, finish_reason }],
      });
      const usage = { prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 };
      const end = { ...chunk({}), choices: [], usage };
      const call = { index: 0, id: "call_1", type: "function" };
      const seen = world.play((request) => {
        const turn = request.body.messages.filter((one: { role: string }) => one.role === "user");
        const hasResult = request.body.messages.at(-1).role === "tool";
        if (!request.body.stream) {
          const message = { role: "assistant", content: "In one piece." };
          const choice = { index: 0, message, finish_reason: "stop" };
          return { kind: "json", body: { ...chunk({}), choices: [choice], usage } };
        }
        if (turn.length === 1 && !hasResult) {
          const named = { ...call, function: { name: "get_weather", arguments: '{"city":' } };
          const rest = { index: 0, function: { arguments: '"Paris"}' } };
          return {
            kind: "events",
            events: [
              chunk({ role: "assistant", content: null, reasoning_content: "Which city?" }),
              chunk({ tool_calls: [named] }),
              chunk({ tool_calls: [rest] }),
              chunk({}, "tool_calls"),
              end,
            ],
          };
        }
        return {
          kind: "events",
          events: [chunk({ content: "It is mild." }), chunk({}, "stop"), end],
        };
      });
      await visit(page, origin, "/console/playground?kind=chat&model=legacy");
      await page.getByLabel("Instructions").fill("Be brief.");
      await page.getByRole("button", { name: "Insert an example" }).click();
      await page.getByLabel("Message").fill("What is the weather in Paris?");
      const before = await caller.settled();
      await page.keyboard.press("Enter");
      await page.getByText("get_weather({").first().waitFor();
      await page.getByText("Reasoning", { exact: true }).first().waitFor();
      await page.getByLabel("Result of get_weather").fill('{"celsius": 21}');
      await page.getByRole("button", { name: "Send the result" }).click();
      await page.getByText("It is mild.", { exact: true }).waitFor();
      await expect.poll(() => page.locator(".charge").count(), { timeout: 20_000 }).toBe(2);
      const { messages, tools } = seen.at(-1)?.body ?? {};
      expect(messages.map((one: { role: string }) => one.role).slice(-4)).toEqual([
        ...["system", "user", "assistant", "tool"],
      ]);
      expect(messages.at(-1)).toMatchObject({ tool_call_id: "call_1", content: '{"celsius": 21}' });
      expect(tools[0].function.name).toBe("get_weather");
      await page.getByLabel("Stream the answer").uncheck();
      await page.getByLabel("Message").fill("Once more");
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByText("In one piece.", { exact: true }).waitFor();
      await expect.poll(() => page.locator(".charge").count(), { timeout: 20_000 }).toBe(3);
      const costs = await page
        .locator(".charge data")
        .evaluateAll((all) => all.map((one) => Number((one as HTMLDataElement).value)));
      const after = await caller.settled();
      expect(costs.reduce((sum, cost) => sum + cost, 0)).toBe(before.available - after.available);
      const code = await check();
      expect(code).toContain("/v1/chat/completions");
      await page
        .getByRole("radio", { name: "Python" })
        .or(page.getByText("Python"))
        .first()
        .click();
      expect(await check()).toContain("client.chat.completions.create(");
      await page.getByRole("button", { name: "Clear" }).click();
      await page.getByLabel("Stream the answer").check();
    },
    generationMs,
  );

  test.each([
    { kind: "image", label: "Prompt", text: "A fox in the snow", price: 5, shown: "img" },
    { kind: "video", label: "Prompt", text: "Waves", price: 45, shown: "video" },
    { kind: "music", label: "Title", text: "Harbour lights", price: 20, shown: "audio" },
  ])(
    "$kind: price before, progress, preview, charge after",
    async ({ kind, label, text, price, shown }) => {
      await visit(page, origin, `/console/playground?kind=${kind}`);
      await page.getByLabel(label, { exact: true }).fill(text);
      expect(await page.locator(".pay strong").textContent()).toBe(`${price} credits`);
      const before = await credits();
      await page.getByRole("button", { name: "Generate" }).click();
      await charged().waitFor({ timeout: generationMs });
      expect(await charged().textContent()).toBe(`charged ${price} credits`);
      expect(before - (await credits())).toBe(price);
      const preview = page.locator(`.outputs ${shown}`).first();
      await expect
        .poll(() =>
          preview.evaluate((element) =>
            element instanceof HTMLMediaElement ? element.duration > 0 : element.clientHeight > 0,
          ),
        )
        .toBe(true);
      expect(await check()).toContain(text);
    },
    generationMs,
  );

  test(
    "speech: price before is the charge after",
    async () => {
      await visit(page, origin, "/console/playground?kind=speech");
      await page.getByLabel("Text", { exact: true }).fill("Hello there. 👋");
      const price = await page.locator(".pay strong data").getAttribute("value");
      await page.getByRole("button", { name: "Speak" }).click();
      await charged().waitFor();
      expect(await charged().locator("data").getAttribute("value")).toBe(price);
      await check();
    },
    generationMs,
  );

  test("a link opens with the same settings, which go to no server", async () => {
    await visit(page, origin, "/console/playground?kind=image");
    await page.getByLabel("Prompt", { exact: true }).fill("A lighthouse & a gull");
    await page.getByLabel("Size").selectOption("1792x1024");
    await page.getByLabel("Images", { exact: true }).fill("3");
    await page.getByRole("button", { name: "Copy link to these settings" }).click();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    const code = await check();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto("about:blank");
    await page.goto(link);
    await page.getByLabel("Prompt", { exact: true }).waitFor();
    await expect.poll(() => page.locator("figure.code pre").textContent()).toBe(code);
    expect(asked.join()).not.toContain("lighthouse");
  });

  test(
    "files: uploaded, used as a reference, deleted",
    async () => {
      await visit(page, origin, "/console/jobs?kind=image");
      const src = (await page.locator("img.thumb").first().getAttribute("src")) ?? "";
      const image = await fetch(caller.baseUrl + src.replace("/console/api/v1", ""), {
        headers: { authorization: `Bearer ${caller.key}` },
      });
      await visit(page, origin, "/console/files");
      await page.locator("input[type=file]").setInputFiles({
        name: "fox.png",
        mimeType: "image/png",
        buffer: Buffer.from(await image.arrayBuffer()),
      });
      await page.getByRole("link", { name: "Use as reference" }).click();
      await page.getByAltText("Reference 1").waitFor();
      expect(await check()).toContain("input_reference");
      await visit(page, origin, "/console/files");
      await page.getByRole("button", { name: "Delete fox.png" }).click();
      await page.getByRole("button", { name: "Delete for good" }).click();
      await page.getByText("No files yet").waitFor();
    },
    generationMs,
  );

  test(
    "jobs: one job with its files, cancelled, deleted",
    async () => {
      const begun = await caller.post("/videos/generations", {
        model: "svc-video-1-5",
        prompt: "Waves",
        seconds: 15,
        resolution: "1080p",
      });
      const { id } = begun.json;
      await visitRunning(`/console/jobs?id=${id}`);
      const row = page.getByRole("row").filter({ hasText: String(id).slice(-8) });
      await row.getByRole("button", { name: "Cancel", exact: true }).click();
      await row.getByRole("button", { name: "cancelled" }).waitFor();
      await row.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Delete for good" }).click();
      await expect.poll(() => row.count()).toBe(0);
      await page.getByRole("row").nth(1).getByRole("link").click();
      await page.locator("#job .outputs").waitFor();
      await check();
    },
    generationMs,
  );

  /** Like {@link visit}, for a screen with work that does not end. */
  async function visitRunning(path: string): Promise<void> {
    await page.goto(origin + path);
    await page.locator("tbody th").first().waitFor();
  }
});
