import { expect, test } from "vitest";
import { stepOfCode } from "./totp.ts";

/** "12345678901234567890" in base32: the secret of RFC 6238's test vectors. */
const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

// The vectors have eight digits. Their last six are the code of six.
test.each([
  [59, "287082", 1],
  [1_111_111_109, "081804", 37_037_036],
  [1_111_111_111, "050471", 37_037_037],
  [1_234_567_890, "005924", 41_152_263],
  [2_000_000_000, "279037", 66_666_666],
  [20_000_000_000, "353130", 666_666_666],
])("at %i s the code is %s", (seconds, code, step) => {
  expect(stepOfCode(secret, code, seconds * 1_000, 0)).toBe(step);
  expect(stepOfCode(secret, ` ${code.slice(0, 3)} ${code.slice(3)}`, seconds * 1_000, 0)).toBe(
    step,
  );
  expect(stepOfCode(secret, code, (seconds + 30) * 1_000, 0)).toBeUndefined();
  expect(stepOfCode(secret, code, (seconds + 30) * 1_000, 1)).toBe(step);
  expect(stepOfCode(secret, code, (seconds + 90) * 1_000, 1)).toBeUndefined();
});
