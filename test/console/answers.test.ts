import type { Page } from "playwright-core";
import { beforeEach, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

const tracker = "https://images.example.com/seen.png?who=you";
const answer = `# Two ways

A **bold** word, \`code\`, 1 &lt; 2 and [a page](https://example.com/page "title").

1. first
2. second
   - [x] done

\`\`\`python
print("<b>hi</b>")
\`\`\`

| name | bytes |
| --- | ---: |
| a | 12 |

![a cat](${tracker})

<img src="${tracker}" onerror="document.title='broken'">

[bad](javascript:document.title='broken')
`;

/** An answer in two pieces. */
function eventsOf(text: string): Record<string, unknown>[] {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...{ id: "c1", object: "chat.completion.chunk", created: 1, model: "up" },
    choices: [{ index: 0, delta, finish_reason }],
  });
  const half = text.length / 2;
  const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 };
  return [
    chunk({ content: text.slice(0, half) }),
    chunk({ content: text.slice(half) }),
    chunk({}, "stop"),
    { ...chunk({}), choices: [], usage },
  ];
}

describe.skipIf(chromiumPath === undefined)("answers in the console's playground", () => {
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
    await visit(page, on.origin, "/console/playground?kind=chat&model=legacy");
  });

  const answers = (text: string) => on.world.play({ kind: "events", events: eventsOf(text) });
  const say = async (text: string) => {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await page.keyboard.press("Enter");
    await page.locator(".answer .charge").last().waitFor();
  };

  test("Markdown with code to copy; HTML stays text, and no image is loaded", async () => {
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    answers(answer);
    await say("Which ways are there?");
    const shown = page.locator(".answer .markdown");
    await shown.getByRole("heading", { name: "Two ways" }).waitFor();
    expect(await shown.locator("strong").textContent()).toBe("bold");
    expect(await shown.locator("ol > li").count()).toBe(2);
    expect(await shown.locator("td").allTextContents()).toEqual(["a", "12"]);
    expect(await shown.textContent()).toContain("1 < 2");
    await shown.getByRole("button", { name: "Copy", exact: true }).click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('print("<b>hi</b>")');
    expect(await shown.getByRole("link", { name: "Image: a cat" }).getAttribute("href")).toBe(
      tracker,
    );
    expect(await shown.locator("a").allTextContents()).toEqual(["a page", "Image: a cat"]);
    expect(await shown.locator("img, script").count()).toBe(0);
    expect(await page.title()).not.toContain("broken");
    expect(asked.filter((url) => !url.startsWith(on.origin))).toEqual([]);
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });

  test("two models answer side by side; one answers again, a turn is edited for both", async () => {
    await page.setViewportSize({ width: 1280, height: 900 });
    answers("The first model alone.");
    await say("Hello");
    const seen = on.world.play((request) => ({
      kind: "events",
      events: eventsOf(`I am ${request.body.messages ? "legacy" : "another"}.`),
    }));
    await page.getByLabel("Compare with").selectOption("chat-1");
    await page.getByLabel("Message").fill("Who are you?");
    await page.keyboard.press("Enter");
    const sides = page.locator(".pair > .side-answers");
    await sides.nth(1).locator(".charge").waitFor();
    await sides.first().locator(".charge").waitFor();
    expect(await sides.count()).toBe(2);
    expect(await sides.first().locator(".markdown").textContent()).toBe("I am legacy.");
    // The second model goes on from the same place.
    expect(seen.at(-1)?.body.messages).toHaveLength(4);
    expect(await lookFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });
    await sides.first().getByRole("button", { name: "Answer again" }).click();
    await expect.poll(() => seen.length).toBe(2);
    await sides.first().locator(".charge").waitFor();
    expect(await sides.count()).toBe(2);
    await page.getByRole("button", { name: "Edit message" }).last().click();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("Who are you?");
    expect(await sides.count()).toBe(0);
    expect(await page.getByRole("article", { name: "The model" }).count()).toBe(1);
    expect(opened.faults).toEqual([]);
  });

  test("sampling, stop and a schema are sent; a schema with a fault is not", async () => {
    await page.setViewportSize({ width: 1280, height: 900 });
    const seen = answers('{"answer":"four"}');
    await page.getByText("Sampling and format").click();
    await page.getByLabel("Temperature").fill("0.3");
    await page.getByLabel("Top P").fill("0.9");
    await page.getByLabel("Seed").fill("7");
    await page.getByLabel("Stop", { exact: true }).fill("END\n###");
    const schema = page.getByLabel("JSON schema of the answer");
    await schema.fill('{"type": "object", "properties": {"answer": {"type": "text"}}}');
    await page.getByText(/unknown type "text"/).waitFor();
    await page.getByLabel("Message").fill("Two and two?");
    await page.keyboard.press("Enter");
    expect(await page.getByRole("article", { name: "The model" }).count()).toBe(0);
    await schema.fill('{"type": "object", "properties": {"answer": {"type": "string"}}}');
    await page.getByLabel("Message").focus();
    await page.keyboard.press("Enter");
    await page.locator(".answer .charge").waitFor();
    const { body } = seen[0] ?? {};
    expect(body).toMatchObject({ temperature: 0.3, top_p: 0.9, seed: 7, stop: ["END", "###"] });
    expect(body.response_format).toMatchObject({
      type: "json_schema",
      json_schema: { name: "answer", schema: { type: "object" } },
    });
    expect(
      await page.getByRole("figure", { name: "Answer in JSON" }).locator("code").textContent(),
    ).toBe('{\n  "answer": "four"\n}');
    expect(await lookFindings(page)).toEqual([]);
  });
});
