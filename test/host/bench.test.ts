import { join } from "node:path";
import { expect, test } from "vitest";
import { root, startProcess } from "./process.ts";

test("the bench runs, and reports what it promises", async () => {
  const bench = join(root, "bench/main.ts");
  await using child = startProcess(process.execPath, [bench, "--seconds", "0.2"]);
  const { code } = await child.ended;
  expect({ code, stderr: code === 0 ? "" : child.stderr() }).toEqual({ code: 0, stderr: "" });
  const report = child.stdout();
  for (const load of ["JSON, 1", "JSON, 32", "stream, 1", "stream, 32"]) {
    expect(report).toMatch(
      new RegExp(`^${load} in flight +[\\d,]+ +[\\d,]+ +[\\d.]+ +\\d+ µs`, "m"),
    );
  }
  expect(report).toContain("time of a whole answer");
  expect(report).toContain("time to the first delta");
  expect(report).not.toContain("NaN");
});
