import { expect, test } from "vitest";
import { onDisk } from "./disk-errors.ts";
import { ErrorReason } from "./errors.ts";

const failing = (code: string) => Promise.reject(Object.assign(new Error(code), { code }));

test.each(["ENOSPC", "EDQUOT", "EIO", "EROFS", "EMFILE", "ENFILE"])(
  "%s of a file operation is a store that is away",
  async (code) => {
    await expect(onDisk(failing(code))).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
      metadata: { retry_after_ms: "1000" },
      cause: { code },
    });
  },
);

test.each(["ENOENT", "EEXIST", "EACCES"])("%s stays what it is", async (code) => {
  await expect(onDisk(failing(code))).rejects.toMatchObject({ code });
});
