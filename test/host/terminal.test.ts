import { join } from "node:path";
import { expect, test } from "vitest";
import { root, startProcess, tempFolder } from "./process.ts";

// Standard error and output share one pipe, in the order of their writing. The program believes that standard error is a terminal.
const asTerminal = "data:text/javascript,process.stderr.isTTY=true";
const script = `exec "$0" --disable-warning=ExperimentalWarning --import ${asTerminal} "$1" 2>&1`;
const main = join(root, "services/host/main.ts");

async function start(env: Record<string, string>) {
  const folder = await tempFolder();
  const child = startProcess("/bin/sh", ["-c", script, process.execPath, main], {
    env: {
      PORT: "0",
      GRPC_PORT: "0",
      GENMESH_OPS_PORT: "0",
      GENMESH_DATA_DIR: join(folder.path, "data"),
      ...env,
    },
  });
  await child.says(/^console: .*\n/m);
  child.kill("SIGTERM");
  await child.ended;
  await folder[Symbol.asyncDispose]();
  return child.stdout().trimEnd().split("\n");
}

test("a terminal is shown short lines, and where to call last", async () => {
  const lines = await start({ TERM: "xterm" });
  const banner = lines.findIndex((line) => line.startsWith("genmesh is ready: http://"));
  expect(banner).toBeGreaterThan(2);
  expect(lines[banner]).toMatch(/ {2}key: gm_\w+$/);
  const colour = String.fromCharCode(27);
  expect(lines[banner + 1]).toMatch(/^console: http:\/\/\S+\/console\/$/);
  for (const line of lines.filter((_, n) => n !== banner && n !== banner + 1)) {
    expect(line.replaceAll(colour, "")).toMatch(/^\[\d\d:\d\d:\d\d\] \[32mINFO\[39m: \[36m[a-z ]+/);
  }
  // All lines of the start came before.
  expect(lines[banner + 2]).toContain("stopping");
});

test("without colours where they are not wanted", async () => {
  const lines = await start({ NO_COLOR: "1" });
  for (const line of lines)
    expect(line).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: |^genmesh is ready: |^console: /);
  expect(lines.join("")).not.toContain(String.fromCharCode(27));
});
