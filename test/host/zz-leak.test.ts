import { test } from "vitest";
import { startRunning, tempFolder } from "./process.ts";
test("x", async () => {
  await using f = await tempFolder();
  await using m = await startRunning({ GENMESH_DATA_DIR: f.path });
  await new Promise(() => m);
}, 4000);
