import { join } from "node:path";
import { expect, test } from "vitest";
import { root, startProcess, tempFolder } from "./process.ts";

test("a process that nothing is asked of collects its garbage, and gives V8's spare pages back", async () => {
  await using folder = await tempFolder();
  const args = ["--trace-gc", join(root, "services/host/main.ts")];
  const env = { PORT: "0", GRPC_PORT: "0", GENMESH_OPS_PORT: "0", GENMESH_DATA_DIR: folder.path };
  await using running = startProcess(process.execPath, args, { env });
  await running.says(/genmesh is ready/);
  // V8 prints how it collects, and why. It calls a collection that the program asks for "testing".
  const [, how] = await running.says(/Mark-Compact \((\w+)\) .* testing; /);
  expect(how).toBe("reduce");
});
