import { join } from "node:path";
import { expect, test } from "vitest";
import { root, startProcess, tempFolder } from "./process.ts";

test("a process that nothing is asked of gives memory back for that, and not because 100 s are over", async () => {
  await using folder = await tempFolder();
  const args = ["--trace-memory-reducer", join(root, "services/host/main.ts")];
  const env = { PORT: "0", GRPC_PORT: "0", GENMESH_OPS_PORT: "0", GENMESH_DATA_DIR: folder.path };
  await using running = startProcess(process.execPath, args, { env });
  await running.says(/genmesh is ready/);
  // V8 prints its observation, and on the next line the start of a reduction.
  const [, rate] = await running.says(/Memory reducer: (\w+) alloc, .*\n.*Memory reducer: started/);
  expect(rate).toBe("low");
});
