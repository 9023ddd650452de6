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

  /** The model's next answer, in two pieces. */
  const answers = (text: string) => {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...{ id: "c1", object: "chat.completion.chunk", created: 1, model: "up" },
      choices: [{ index: 0, delta, finish_reason }],
    });
    const half = text.length / 2;
    return on.world.play({
      kind: "events",
      events: [
        chunk({ content: text.slice(0, half) }),
        chunk({ content: text.slice(half) }),
        chunk({}, "stop"),
        {
          ...chunk({}),
          choices: [],
          usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 },
        },
      ],
    });
  };
  const say = async (text: string) => {
    await page.getByLabel("Message").fill(text);
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
});
