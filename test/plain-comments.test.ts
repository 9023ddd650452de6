import { describe, expect, test } from "vitest";
import { ownFiles } from "./support/own-files.ts";
import { faultsOf } from "./support/plain-comments.ts";

/** The folders whose comments follow these rules. A folder includes those in it. */
const held: readonly string[] = [
  "bench",
  "bin",
  "deploy",
  "gateway",
  "proto",
  "services/auth",
  "services/billing",
  "services/builtin",
  "services/catalog",
  "services/common",
  "services/host",
  "services/kit",
  "services/media",
  "services/text",
  "services/upstreams",
  "test",
];

const isIn = (file: string, folder: string) => file.startsWith(`${folder}/`);

const sources = ownFiles().filter(
  (file) => /\.(tsx?|js|proto)$/.test(file) && !isIn(file, "proto/gen") && !isIn(file, "proto/buf"),
);

describe("comments are plain", () => {
  test.each(held)("those of %s", (folder) => {
    const files = sources.filter((file) => isIn(file, folder));
    expect(files).not.toEqual([]);
    expect(files.flatMap(faultsOf)).toEqual([]);
  });
});
