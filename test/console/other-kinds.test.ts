import type { Page } from "playwright-core";
import { beforeEach, describe, expect, test } from "vitest";
import type { CatalogObject } from "../e2e/catalog.ts";
import { wav } from "../e2e/file-parts.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

/** A token of an embedding costs a micro, a second of a recording a thousand. */
function withOtherKinds(usual: CatalogObject): CatalogObject {
  const models = [
    {
      ...{ id: "vectors", kind: "embedding", upstream: "main" },
      ...{ maxInputTokens: 1_000, maxInputs: 3 },
      pricing: { inputUsdMicrosPerMillionTokens: 1_000_000 },
    },
    {
      ...{ id: "ears", kind: "transcription", upstream: "main", maxSeconds: 60 },
      pricing: { usdMicrosPerMinute: 60_000 },
    },
  ];
  return { ...usual, models: [...usual.models, ...models] };
}

describe.skipIf(chromiumPath === undefined)("other kinds of models in the playground", () => {
  const on = startConsole({ catalog: withOtherKinds });
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;

  beforeEach(async () => {
    opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, (await on.world.caller()).key);
  });

  test("embeddings: vectors, how near the texts are, the charge", async () => {
    await visit(page, on.origin, "/console/playground?kind=embedding");
    const embeddings = [
      [1, 0],
      [0.6, 0.8],
    ];
    const seen = on.world.play({
      kind: "json",
      body: {
        object: "list",
        model: "up",
        data: embeddings.map((embedding, index) => ({ object: "embedding", index, embedding })),
        usage: { prompt_tokens: 7, total_tokens: 7 },
      },
    });
    await page.getByLabel("Texts").fill("a\nb\nc\nd");
    await page.getByText("At most 3 lines.").waitFor();
    await page.getByLabel("Texts").fill("the sea\n\nan ocean");
    await page.getByRole("button", { name: "Embed", exact: true }).click();
    await page.getByText("charged $0.000007").waitFor();
    expect(seen[0]?.body.input).toEqual(["the sea", "an ocean"]);
    expect(await page.locator("td").allTextContents()).toEqual([
      ...["1.000", "0.600", "0.600", "1.000"],
    ]);
    await page.getByRole("button", { name: "Copy vector" }).last().click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("[0.6,0.8]");
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });

  test("transcription: a recording's words and the charge", async () => {
    await visit(page, on.origin, "/console/playground?kind=transcription");
    on.world.play({ kind: "json", body: { text: "Good morning." } });
    await page.getByRole("button", { name: "Transcribe", exact: true }).click();
    await page.getByText(/^A recording is needed/).waitFor();
    await page.getByLabel("Recording to transcribe").setInputFiles({
      ...{ name: "call.wav", mimeType: "audio/wav" },
      buffer: wav,
    });
    await page.getByLabel("Language").fill("en");
    await page.getByRole("button", { name: "Transcribe", exact: true }).click();
    await page.getByText("Good morning.").waitFor();
    await page.getByText(/^charged \$0\.00[12]/).waitFor();
    expect(await page.locator("figure.code pre").textContent()).toContain("file=@call.wav");
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });

  test("speech: a voice is heard before, and a format other than MP3 is made", async () => {
    await visit(page, on.origin, "/console/playground?kind=speech&model=speech-1");
    await page.getByLabel("Voice").selectOption("coral");
    await page.getByRole("button", { name: "Hear coral" }).click();
    const heard = page.getByLabel("The voice coral");
    const hasSound = (element: Element) => (element as HTMLAudioElement).duration > 0;
    await expect.poll(() => heard.evaluate(hasSound)).toBe(true);
    await page.getByLabel("Format").selectOption("wav");
    await page.getByLabel("Text", { exact: true }).fill("Hello there.");
    const price = await page.locator(".pay strong data").getAttribute("value");
    await page.getByRole("button", { name: "Speak" }).click();
    const made = page.getByLabel("Speech in WAV", { exact: true });
    await expect.poll(() => made.evaluate(hasSound)).toBe(true);
    expect(await page.locator(".results header data").first().getAttribute("value")).toBe(price);
    expect(
      await page.getByRole("link", { name: "Download Speech in WAV" }).getAttribute("download"),
    ).toBe("speech.wav");
    expect(await lookFindings(page)).toEqual([]);
    expect(opened.faults).toEqual([]);
  });
});
