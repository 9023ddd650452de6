import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { version } from "../../services/host/version.ts";
import type { Caller } from "../e2e/caller.ts";
import { ended, type MediaWorld, startMediaWorld, submit, upload } from "../e2e/media-world.ts";
import { oneProcessOnly } from "../e2e/world.ts";
import { chromiumPath, openBrowser, openPage } from "../support/browser.ts";
import { certificateFolder, noCertificates } from "../support/certificates.ts";
import { lookFindings, openConsoleMs, signIn, untilBuilt, visit } from "./screens.ts";

const isSkipped = chromiumPath === undefined || noCertificates !== undefined;

describe.skipIf(isSkipped)("what a file says of its origin, in a browser", () => {
  oneProcessOnly();

  const stack = new AsyncDisposableStack();
  let made: MediaWorld;
  let browser: Browser;
  let caller: Caller;
  let origin: string;
  let opened: Awaited<ReturnType<typeof openPage>>;

  beforeAll(async () => {
    const folder = stack.use(await certificateFolder());
    const pair = await (await folder.authority()).issueSigner("Example Studio");
    const keyFile = join(folder.path, "signer.key");
    await writeFile(keyFile, pair.key);
    const contentCredentials = { certificate: pair.cert, keyFile };
    made = stack.use(await startMediaWorld({ contentCredentials }));
    const { world } = made;
    origin = new URL(world.baseUrl).origin;
    caller = await world.caller({ credits: 100n });
    await untilBuilt(origin);
    browser = await openBrowser();
    stack.defer(() => browser.close());
    opened = await openPage(browser);
    stack.defer(() => opened.close());
    await signIn(opened.page, origin, caller.key);
  }, openConsoleMs);
  afterAll(() => stack.disposeAsync());

  test("is in a job's details: made by AI, with what, when, and signed by whom", async () => {
    const { page, faults } = opened;
    const job = await submit(caller, "images", { model: "scripted-image", prompt: "a boat" });
    await ended(caller, job);
    await visit(page, origin, `/console/jobs?id=${job.id}`);
    await page.getByText("Content credentials").click();
    const words = page.locator("details dl.facts");
    await words.waitFor();
    const facts = await words.locator(".fact").allInnerTexts();
    expect(facts.map((fact) => fact.split("\n").map((line) => line.trim()))).toEqual([
      ["Made by AI", "yes"],
      ["Made with", `genmesh ${version}`],
      ["Made", expect.stringMatching(/\d/)],
      ["Signed by", "Example Studio, vouched for by authority"],
    ]);
    expect(await lookFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  test("is nothing where a file has no manifest", async () => {
    const { page, faults } = opened;
    const { json } = await upload(caller, made.png);
    await visit(page, origin, `/console/files?id=${json.id}`);
    await page.getByText("Content credentials").click();
    await page.getByText("The file has no content credentials.").waitFor();
    expect(await lookFindings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });
});
