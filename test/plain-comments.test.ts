import { describe, expect, test } from "vitest";
import { ownFiles } from "./support/own-files.ts";
import { faultsOf } from "./support/plain-comments.ts";

/** The folders whose comments are held to these rules already, with all that lies in them. */
const held: readonly string[] = ["services/kit"];

const sources = ownFiles().filter(
  (file) => /\.(tsx?|js|proto)$/.test(file) && !file.startsWith("proto/gen/"),
);

describe("comments are plain", () => {
  test.each(held)("those of %s", (folder) => {
    const files = sources.filter((file) => file.startsWith(`${folder}/`));
    expect(files).not.toEqual([]);
    expect(files.flatMap(faultsOf)).toEqual([]);
  });
});
