import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";

/** Runs `body` with a logger on standard error. Answers the lines, and whether they came before the process ended. */
async function logged(body: string): Promise<{ lines: string[]; wasRunning: boolean }> {
  const module = JSON.stringify(new URL("./logger.ts", import.meta.url).href);
  const script = `import { createLogger } from ${module}; const log = createLogger("info"); ${body}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  let wasRunning = false;
  child.stderr.on("data", (bytes) => {
    text += bytes;
    wasRunning ||= child.exitCode === null && child.signalCode === null;
    if (text.includes('"last"')) child.kill("SIGKILL");
  });
  await once(child, "close");
  const lines = text.split("\n").filter((line) => line.startsWith("{"));
  return { lines: lines.map((line) => JSON.parse(line).msg), wasRunning };
}

describe("lines on standard error", () => {
  test("are all there when the process ends", async () => {
    const { lines } = await logged(
      'for (let i = 0; i < 500; i++) log.info("n" + i); process.exit()',
    );
    expect(lines).toEqual(Array.from({ length: 500 }, (_, i) => `n${i}`));
  });

  test("come while the process goes on", async () => {
    const { lines, wasRunning } = await logged('log.info("last"); setInterval(() => {}, 1000)');
    expect(lines).toEqual(["last"]);
    expect(wasRunning).toBe(true);
  });

  test("come at once from an error on", async () => {
    const { lines } = await logged('log.info("first"); log.error("last"); for (;;);');
    expect(lines).toEqual(["first", "last"]);
  });
});
