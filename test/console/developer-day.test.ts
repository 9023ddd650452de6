import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { type Caller, refusalOf } from "../e2e/caller.ts";
import { chat } from "../e2e/catalog.ts";
import { creditsOf, type MediaWorld, startMediaWorld } from "../e2e/media-world.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { chromiumPath, openBrowser } from "../support/browser.ts";
import { formOf } from "../support/scripted-media-upstream.ts";
import { until } from "../support/until.ts";
import { give } from "./give.ts";
import { openConsoleMs, untilBuilt } from "./screens.ts";
import { openTab, type Tab } from "./tab.ts";
import { everyScope } from "./used-world.ts";

const vendorWords = "The guard of secret-vendor says no.";
/** Credits of the video that is made. */
const videoPrice = 45;

describe.skipIf(chromiumPath === undefined)("a developer's day, without a shell", () => {
  oneProcessOnly();

  let made: MediaWorld;
  let browser: Browser;
  let owner: Caller;
  let tab: Tab;
  let page: Tab["page"];
  let origin: string;

  beforeAll(async () => {
    const models = [chat("terse", { name: "Terse" }), chat("wordy", { name: "Wordy" })];
    made = await startMediaWorld({ models });
    const { world } = made;
    origin = new URL(world.baseUrl).origin;
    await untilBuilt(origin);
    const account = await world.caller({ credits: 1_000n });
    owner = await world.withKey(account, { name: "Ada", scopes: everyScope });
    browser = await openBrowser();
    tab = await openTab(browser);
    page = tab.page;
  }, openConsoleMs);
  afterAll(async () => {
    await browser?.close();
    await made?.[Symbol.asyncDispose]();
  });

  const charges = (inside: string) =>
    page
      .locator(`${inside} data`)
      .evaluateAll((all) => all.map((one) => Number(one.getAttribute("value"))));
  const ofWords = (words: string) => page.locator(".results article").filter({ hasText: words });

  test("signs in, and compares two models", async () => {
    const { world } = made;
    await tab.signIn(origin, owner.key, "Overview");
    expect(await tab.focused()).toBe("Overview");
    await page.getByText('"model": "chat-1"').waitFor();
    await page.getByRole("link", { name: "Try a model in the playground" }).click();
    await page.getByLabel("Model", { exact: true }).selectOption("terse");
    await page.getByLabel("Compare with").selectOption("wordy");
    const seen = world.play(({ body }) => ({
      kind: "ok",
      deltas: body.input.at(-1) && body.model === "terse" ? ["Blue."] : ["It ", "scatters."],
    }));
    const before = await owner.settled();
    await page.getByLabel("Message").fill("Why is the sky blue?");
    await page.keyboard.press("Enter");
    await page.locator(".answer .charge").nth(1).waitFor();
    expect(seen.map(({ body }) => body.model).sort()).toEqual(["terse", "wordy"]);
    expect(await page.locator(".side-answers .markdown").allTextContents()).toEqual([
      ...["Blue.", "It scatters."],
    ]);
    const costs = await charges(".charge");
    const after = await owner.settled();
    expect(costs.reduce((sum, cost) => sum + cost, 0)).toBe(before.available - after.available);
  });

  test("pastes a picture, and makes a video from it", async () => {
    const { media } = made;
    const picture = await samplePng(320, 240);
    await page.getByRole("button", { name: "Video", exact: true }).click();
    await page.getByLabel("Prompt").fill("The waves begin to move");
    await give(page, "paste", "textarea[required]", [
      { name: "sea.png", type: "image/png", bytes: picture },
    ]);
    await page.getByAltText("Reference 1").waitFor();
    await page.getByText(/^From an image/).waitFor();
    await page.getByRole("button", { name: "Generate" }).focus();
    await page.keyboard.press("Enter");
    await ofWords("The waves begin").getByText(`charged ${videoPrice} credits`).waitFor();
    const shown = ofWords("The waves begin").locator("video");
    await expect
      .poll(() => shown.evaluate((one) => (one as HTMLVideoElement).duration))
      .toBeGreaterThan(0);
    await expect.poll(tab.focused).toBe("Generate");
    const [sent] = media.seen("POST /videos");
    const reference = sent && (await formOf(sent)).get("input_reference");
    expect(Buffer.from(await (reference as File).arrayBuffer())).toEqual(picture);
    expect((await creditsOf(owner)).available).toBe(1_000 - videoPrice);
  });

  test("finds why another one failed, and tries it again", async () => {
    const { media } = made;
    media.next("POST /videos", {
      ...{ kind: "status", status: 400, code: "moderation_blocked", message: vendorWords },
    });
    await page.getByLabel("Prompt").fill("The waves break");
    await tab.press("Generate");
    const why = "The model's safety check refused the request.";
    await ofWords("The waves break").getByText(why).waitFor();
    await tab.go("Overview");
    const errors = page.locator("section").filter({ hasText: "Last errors" });
    await errors.getByText(why).waitFor();
    await errors.locator("li a").click();
    await page.locator(".error").getByText("content_policy_violation").waitFor();
    await page.getByRole("link", { name: /^job_/ }).click();
    await page.locator("#job > p").getByText("It could not be made, and costs nothing.").waitFor();
    await page.locator("#job .error").getByText(why).waitFor();
    await page.getByRole("link", { name: "Try again" }).click();
    await page.getByAltText("Reference 1").waitFor();
    expect(await page.getByLabel("Prompt").inputValue()).toBe("The waves break");
    await page.getByLabel("Prompt").fill("The waves break softly");
    await tab.press("Generate");
    await ofWords("break softly").getByText(`charged ${videoPrice} credits`).waitFor();
    expect((await creditsOf(owner)).available).toBe(1_000 - 2 * videoPrice);
    expect(await page.content()).not.toContain("secret-vendor");
  });

  test("limits a key, which is refused at its limit and goes on above it", async () => {
    const { world } = made;
    await tab.go("Keys");
    await tab.press("Create a key");
    await tab.dialog().getByLabel("Name", { exact: true }).fill("website");
    await tab.dialog().getByLabel("Terse", { exact: true }).check();
    await tab.dialog().getByLabel("Limit in US dollars").fill("0.005");
    await tab.press("Create key");
    await page.getByLabel("Your API key").fill(owner.key);
    await tab.press("Confirm");
    await page.getByText("The secret of website").waitFor();
    const secret = await tab.dialog().locator(".secret code").textContent();
    await tab.press("I have copied it");
    await expect.poll(tab.focused).toBe("Create a key");

    // 1,000 micros for the input and 2,000 for the output. After that the hold of another request is above the rest.
    const usage = { input_tokens: 1_000, output_tokens: 500, total_tokens: 1_500 };
    world.play({ kind: "ok", usage });
    const website = world.holding(secret ?? "");
    const ask = async () => {
      const answer = await website.post("/responses", { model: "terse", input: "Hi" });
      return answer.status === 200 ? 200 : refusalOf(answer);
    };
    expect(await ask()).toBe(200);
    await until("the charge", async () => (await owner.balance()).reserved === 0);
    expect(await ask()).toBe("403 permission_error key_limit_exceeded null");
    await tab.go("Overview");
    await tab.go("Keys");
    await tab.row("website").getByText("of $0.005 this month").waitFor();

    await tab.row("website").getByRole("button", { name: "Edit" }).click();
    await tab.dialog().getByLabel("Limit in US dollars").fill("1");
    await tab.press("Save changes");
    await tab.confirm(owner.key);
    await tab.row("website").getByText("of $1.00 this month").waitFor();
    await expect.poll(tab.focused).toBe("Edit");
    await until("the new limit", async () => (await ask()) === 200);
    expect(tab.faults).toEqual([]);
  });
});
