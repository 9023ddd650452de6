import { describe, expect, test } from "vitest";
import { findBackend } from "../support/backends.ts";
import { startMeshProcesses } from "../support/mesh.ts";
import { until } from "../support/until.ts";
import { tempFolder } from "./process.ts";

const key = "key-of-the-mesh-tests";

const servers = await Promise.all((["mongodb", "nats", "s3"] as const).map(findBackend));
const notes = servers.map(({ note }) => note).join("");

describe.skipIf(servers.some(({ url }) => !url))(`a mesh of processes${notes}`, () => {
  test("two of each serve one account behind both gateways", {
    timeout: 240_000,
  }, async () => {
    await using folder = await tempFolder();
    const log: string[] = [];
    await using mesh = await startMeshProcesses({
      replicas: "2",
      dataDir: folder.path,
      log,
      env: { GENMESH_BOOTSTRAP_API_KEY: key },
    });
    expect(mesh?.baseUrls).toHaveLength(2);
    const ask = async (baseUrl: string, path: string, body?: object) => {
      const answer = await fetch(baseUrl + path, {
        method: body ? "POST" : "GET",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      return answer.json();
    };
    const [one = "", other = ""] = mesh?.baseUrls ?? [];
    const said = await ask(one, "/responses", { model: "chat-1", input: "Say done" });
    expect(said.status).toBe("completed");
    // An answer may end before it is settled.
    await until(
      "its settlement",
      async () => (await ask(one, "/billing")).reservedUsdMicros === 0,
      { withinMs: 60_000 },
    );
    const [balance, same] = [await ask(one, "/billing"), await ask(other, "/billing")];
    expect(balance.availableUsdMicros).toBeLessThan(25_000_000);
    expect(same).toEqual(balance);
    const job = await ask(one, "/images/generations", { model: "image-1", prompt: "a fox" });
    await until(
      "the job's end, seen at the other gateway",
      async () => (await ask(other, `/images/generations/${job.id}`)).status === "completed",
      { withinMs: 60_000, everyMs: 200 },
    );
    expect(log.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
  });
});
