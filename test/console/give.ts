import type { Page } from "playwright-core";

/** A file for a page. */
export interface Given {
  name: string;
  type: string;
  bytes: Uint8Array;
}

/** Gives files to the page as a reader's paste does, or as a drop on the element. */
export function give(page: Page, how: "paste" | "drop", selector: string, files: readonly Given[]) {
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
