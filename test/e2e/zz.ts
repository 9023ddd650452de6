import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "#kit/logger.ts";
import { envToConfig } from "../../services/host/config.ts";
import { startMesh } from "../../services/host/mesh.ts";
import { startScriptedUpstream } from "../support/scripted-upstream.ts";
import { testCatalog } from "./catalog.ts";
const upstream = await startScriptedUpstream();
const dir = await mkdtemp(join(tmpdir(), "zz-"));
const { baseUrl: main } = upstream;
await writeFile(join(dir, "c.yaml"), JSON.stringify(testCatalog({ main, backup: main, nowhere: main })));
const key = "crash-test-key-0123456789";
const config = envToConfig({ PORT: "0", GRPC_PORT: "0", GENMESH_DATA_DIR: dir, GENMESH_CATALOG: join(dir, "c.yaml"), GENMESH_BOOTSTRAP_API_KEY: key, UP_KEY: "x" });
const orig = AsyncDisposableStack.prototype.use;
AsyncDisposableStack.prototype.use = function (v: any) {
  const d = v[Symbol.asyncDispose] ?? v[Symbol.dispose];
  const name = v.name ?? Object.keys(v).join(",").slice(0, 60);
  if (d) { const o = v[Symbol.asyncDispose] ? Symbol.asyncDispose : Symbol.dispose; try { v[o] = async () => { console.log("disposing", name); await d.call(v); console.log("disposed", name); }; } catch {} }
  return orig.call(this, v);
};
const mesh = await startMesh(config, { log: createLogger("silent"), signal: new AbortController().signal });
const r = await fetch(`${mesh.baseUrl}/responses`, { method: "POST", headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }, body: JSON.stringify({ model: "scripted", input: "Hi" }) });
console.log(r.status, (await r.text()).length);
await mesh.drain(new AbortController().signal);
console.log("drained");
await mesh[Symbol.asyncDispose]();
console.log("disposed");
process.exit(0);
