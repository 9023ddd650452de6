import type { Page } from "playwright-core";
import sharp from "sharp";
import { beforeEach, describe, expect, test } from "vitest";
import { pdf, wav, withReaders } from "../e2e/file-parts.ts";
import { chromiumPath, openPage } from "../support/browser.ts";
import { lookFindings, signIn, visit } from "./screens.ts";
import { startConsole } from "./start-console.ts";

interface Given {
  name: string;
  type: string;
  bytes: Uint8Array;
}

/** Gives files to the page as a reader's paste does, or as a drop on the element. */
function give(page: Page, how: "paste" | "drop", selector: string, files: readonly Given[]) {
  const sent = files.map(({ bytes, ...rest }) => ({
    ...rest,
    base64: Buffer.from(bytes).toString("base64"),
  }));
  return page.locator(selector).evaluate(
    (element, [kind, all]) => {
      const transfer = new DataTransfer();
      for (const { name, type, base64 } of all) {
        const content = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        transfer.items.add(new File([content], name, { type }));
      }
      const options = { bubbles: true, cancelable: true };
      element.dispatchEvent(
        kind === "paste"
          ? new ClipboardEvent("paste", { ...options, clipboardData: transfer })
          : new DragEvent("drop", { ...options, dataTransfer: transfer }),
      );
    },
    [how, sent] as const,
  );
}

describe.skipIf(chromiumPath === undefined)("files given to the console's playground", () => {
  const on = startConsole({ catalog: withReaders });
  let opened: Awaited<ReturnType<typeof openPage>>;
  let page: Page;
  let image: Given;

  beforeEach(async () => {
    const bytes = await sharp({
      create: { width: 320, height: 240, channels: 3, background: "#3d5bd9" },
    })
      .png()
      .toBuffer();
    image = { name: "sea.png", type: "image/png", bytes };
    const caller = await on.world.caller({ credits: 1_000n });
    opened = await openPage(on.browser);
    page = opened.page;
    page.setDefaultTimeout(15_000);
    await signIn(page, on.origin, caller.key);
  });

  test("a message takes what its model takes, pasted and dropped, and says what it does not", async () => {
    await visit(page, on.origin, "/console/playground?kind=chat&model=reader");
    await give(page, "paste", "textarea[required]", [
      { name: "notes.txt", type: "text/plain", bytes: Buffer.from("words") },
    ]);
    await page.getByText("notes.txt is none of JPEG, PNG, PDF, WAV, MP3.").waitFor();
    await give(page, "paste", "textarea[required]", [
      { name: "paper.pdf", type: "application/pdf", bytes: pdf },
    ]);
    await give(page, "drop", ".composer", [{ name: "call.wav", type: "audio/wav", bytes: wav }]);
    await page.getByRole("link", { name: "paper.pdf" }).waitFor();
    await page.getByLabel("call.wav", { exact: true }).waitFor();
    expect(await lookFindings(page)).toEqual([]);
    const seen = on.world.play();
    await page.getByLabel("Message", { exact: true }).fill("What do they say?");
    await page.keyboard.press("Enter");
    await page.locator(".answer .charge").waitFor();
    const [, file, sound] = seen[0]?.body.input[0].content ?? [];
    expect(file).toMatchObject({ type: "input_file", filename: "paper.pdf" });
    expect(file.file_data).toBe(`data:application/pdf;base64,${pdf.toString("base64")}`);
    expect(sound).toEqual({
      type: "input_audio",
      input_audio: { data: wav.toString("base64"), format: "wav" },
    });
    // They are there after a reload too, and the code has only their beginnings.
    await page.reload();
    await page.getByRole("article", { name: "You" }).getByText("paper.pdf").waitFor();
    expect(await page.locator(".section figure.code pre").textContent()).not.toContain(
      wav.toString("base64"),
    );
    expect(opened.faults).toEqual([]);
  });

  test("an image is pasted into a message, and into the form of a film", async () => {
    await visit(page, on.origin, "/console/playground?kind=chat&model=scripted");
    await give(page, "paste", "textarea[required]", [image]);
    await page.getByAltText("sea.png").waitFor();
    await visit(page, on.origin, "/console/playground?kind=video&model=svc-video-1-5");
    await give(page, "paste", "textarea[required]", [image]);
    await page.getByAltText("Reference 1").waitFor();
    await give(page, "drop", "form", [image]);
    await page.getByAltText("Reference 2").waitFor();
    await visit(page, on.origin, "/console/files");
    await give(page, "paste", "h1", [image]);
    await expect.poll(() => page.locator(".tiles > li").count()).toBe(3);
    expect(opened.faults).toEqual([]);
  });

  test("a reference that is taken out while another is uploaded stays out", async () => {
    await visit(page, on.origin, "/console/playground?kind=video&model=svc-video-1-5");
    await give(page, "drop", "form", [image]);
    const first = page.getByAltText("Reference 1");
    const before = await first.getAttribute("src");
    const { promise: isOut, resolve: takenOut } = Promise.withResolvers<void>();
    await page.route("**/v1/files", async (route) => {
      await isOut;
      await route.continue();
    });
    await give(page, "drop", "form", [image]);
    await page.getByRole("button", { name: "Uploading…" }).waitFor();
    await page.getByRole("button", { name: "Take out reference 1" }).click();
    await expect.poll(() => first.count()).toBe(0);
    takenOut();
    await first.waitFor();
    expect(await first.getAttribute("src")).not.toBe(before);
    expect(await page.getByAltText("Reference 2").count()).toBe(0);
    expect(opened.faults).toEqual([]);
  });
});
