import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCheck } from "./check.ts";
import { report } from "./report.ts";
import { type Result, runSuite } from "./suite.ts";

/** Runs tests of fixtures/ as a suite of their own. */
async function judge(fixture: string, limitSeconds = 60): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), "genmesh-proof-"));
  const suite = {
    name: "made",
    script: "test:fixtures",
    projects: ["fixtures"],
    args: [fixture],
    env: { GENMESH_PROOF_FIXTURES: "1", TEST_RACE_MARKER: join(folder, "marker") },
    limitSeconds,
  } as const;
  try {
    const { result, tryAgain } = await runSuite(suite, () => {});
    await tryAgain();
    return result;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe.concurrent("a suite", () => {
  test("says which test is red, where, and why", async () => {
    const result = await judge("wrong");
    expect(result).toMatchObject({ passed: 1, secondTries: [] });
    const said = report([result]);
    expect(said).toContain("!! made: test/proof/fixtures/wrong.fixture.ts:3 > a wrong amount");
    expect(said).toMatch(/charged": 1[01]/);
    expect(said.split("\n").at(-1)).toBe("1 passed, 1 failed, 0 skipped");
  });

  test("tries what failed once more, alone, and says so", async () => {
    const result = await judge("racy");
    expect(result).toMatchObject({ passed: 2, red: [] });
    const said = report([result]);
    expect(said).toContain(
      "tried again, and passed: made: test/proof/fixtures/racy.fixture.ts:6 > ",
    );
    expect(said.split("\n").at(-1)).toBe("2 passed, 0 failed, 0 skipped");
  });

  test("is red where a hook fails", async () => {
    const { red } = await judge("broken");
    expect(red).toHaveLength(1);
    expect(red[0]?.message).toContain("no server here");
  });

  test("is stopped at its limit, with the tests that were under way", async () => {
    const { red } = await judge("hanging", 12);
    expect(red).toMatchObject([{ name: "stopped after 12 s" }]);
    expect(red[0]?.message).toContain("hanging.fixture.ts > waits for what never comes");
  });

  test("is stopped also where one computes without an end", async () => {
    const { red } = await judge("computing", 12);
    expect(red[0]?.message).toContain("computing.fixture.ts > computes without an end");
  });

  test("is red where it runs no test", async () => {
    const { red } = await judge("no-such-file");
    expect(red).toMatchObject([{ name: "ended with 1" }]);
  });
});

describe.concurrent("a check", () => {
  const checked = (command: readonly [string, ...string[]], limitSeconds = 60) =>
    runCheck({ name: "look", command, limitSeconds }, () => {}).then(({ result }) => result);

  test("is red with the last lines of its output", async () => {
    const result = await checked(["sh", "-c", "seq 100; exit 3"]);
    const lines = report([result]).split("\n");
    expect(lines[0]).toBe("!! look: ended with 3");
    expect(lines.slice(1, -1).map((line) => line.trim())).toEqual(
      Array.from({ length: 40 }, (_, at) => `${at + 61}`),
    );
  });

  test("is stopped at its limit, with all that it started", async () => {
    const { red } = await checked(["sh", "-c", "sleep 600 & sleep 600"], 1);
    expect(red).toMatchObject([{ name: "stopped after 1 s" }]);
  });
});
