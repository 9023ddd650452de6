import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { genmeshEnv, genmeshNodeArgs } from "../../bench/genmesh.ts";
import { root, startProcess } from "./process.ts";

const bench = join(root, "bench/main.ts");

test("the bench says what it can measure", async () => {
  await using child = startProcess(process.execPath, [bench, "--help"]);
  const { code } = await child.ended;
  expect({ code, stderr: child.stderr() }).toEqual({ code: 0, stderr: "" });
  for (const word of [
    "growth",
    "starts",
    "json",
    "latency",
    "prompts",
    "first",
    "paced",
    "deltas",
    "jobs",
  ]) {
    expect(child.stdout()).toContain(word);
  }
});

test("the bench refuses what it does not know, before anything is started", async () => {
  await using child = startProcess(process.execPath, [bench, "--only", "nothing"]);
  const { code } = await child.ended;
  expect(code).not.toBe(0);
  expect(child.stderr()).toContain("nothing");
});

test("npm start, the image and the bench start Node alike", () => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const image = readFileSync(join(root, "deploy/Dockerfile"), "utf8");
  const env = Object.entries(genmeshEnv).map(([name, value]) => `${name}=${value}`);
  expect(scripts.start).toBe(
    `exec env ${env.join(" ")} node ${genmeshNodeArgs.join(" ")} services/host/main.ts`,
  );
  const entry = /^ENTRYPOINT (.*)$/m.exec(image)?.[1] ?? "[]";
  expect(JSON.parse(entry)).toEqual(expect.arrayContaining([...genmeshNodeArgs]));
  // The stages before the last one only build.
  const stage = image.slice(image.lastIndexOf("\nFROM "));
  const variables = /^ENV ((?:.*\\\n)*.*)$/m.exec(stage)?.[1] ?? "";
  for (const one of env) expect(variables).toContain(one);
});
