import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { testCatalog } from "./catalog.ts";
import { startProcess } from "./process.ts";
const upstream = await startScriptedUpstream();
const folder = await mkdtemp(join(tmpdir(), "genmesh-crash-"));
const catalogFile = join(folder, "catalog.yaml");
const { baseUrl: main } = upstream;
await writeFile(catalogFile, JSON.stringify(testCatalog({ main, backup: main, nowhere: main })));
for (const [n, stream, key] of [[1, false, false], [60, false, false], [60, true, false], [60, false, true], [60, true, true]] as const)
test(`stop after ${n} ${stream} ${key}`, async () => {
  const host = await startProcess({ dataDir: join(folder, `d${n}${stream}${key}`), catalogFile, log: true } as never);
  await Promise.all(Array.from({ length: n }, (_, i) => host.caller.post("/responses", { model: "scripted", input: "Hi", stream }, key ? { idempotencyKey: `k${i}` } : {})));
  const t = performance.now();
  const code = await Promise.race([host.stop(), new Promise((r) => setTimeout(r, 8000, "hung"))]);
  console.log(n, stream, key, code, performance.now() - t);
  if (code === "hung") await host.kill();
}, 60000);
