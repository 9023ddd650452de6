import { join } from "node:path";
import { expect, test } from "vitest";
import { root, startProcess } from "./process.ts";

const bench = join(root, "bench/main.ts");

test("the bench says what it can measure", async () => {
  await using child = startProcess(process.execPath, [bench, "--help"]);
  const { code } = await child.ended;
  expect({ code, stderr: child.stderr() }).toEqual({ code: 0, stderr: "" });
  for (const word of ["starts", "json", "latency", "prompts", "first", "paced", "deltas", "jobs"]) {
    expect(child.stdout()).toContain(word);
  }
});

test("the bench refuses what it does not know, before anything is started", async () => {
  await using child = startProcess(process.execPath, [bench, "--only", "nothing"]);
  const { code } = await child.ended;
  expect(code).not.toBe(0);
  expect(child.stderr()).toContain("nothing");
});
