import { test } from "vitest";
import { tempFolder } from "../host/process.ts";
import { aKeyAsTheReadmeHasIt } from "../host/readme-key.ts";
import { describeMesh } from "./servers.ts";
import { startTwoGateways } from "./two-gateways.ts";

await describeMesh("two gateways that take turns", () => {
  test("a key as README.md has it: made, used, limited, seen, rotated, revoked; the audit has its figures", {
    timeout: 300_000,
  }, async () => {
    await using mesh = await startTwoGateways();
    await using folder = await tempFolder();
    await aKeyAsTheReadmeHasIt({
      ...{ baseUrl: `${mesh.origin}/v1`, key: mesh.key, cwd: folder.path },
      operator: { env: mesh.operatorEnv },
    });
  });
});
