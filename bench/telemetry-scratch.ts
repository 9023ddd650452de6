import { spawn } from "node:child_process";
import { requestBody } from "./answers.ts";
import { runLoad } from "./load.ts";
import { startMesh } from "./mesh.ts";
import { pinSelf, startProgram } from "./processes.ts";

const collector = spawn(process.execPath, ["/tmp/otel-w1/collect.mjs"], { stdio: ["ignore", "pipe", "inherit"] });
const port = await new Promise((r) => collector.stdout.once("data", (d) => r(String(d).trim())));
pinSelf(1);
await using upstream = await startProgram("./upstream.ts", { core: 1 });
const upstreamPort = Number(upstream.firstLine);
const http = (key: string, stream: boolean) => {
  const body = requestBody(stream);
  return Buffer.concat([Buffer.from(`POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`), body]);
};
const on = (arg: string) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`, OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: arg });
const variants: Record<string, Record<string, string>> = { off: {}, "10%": on("0.1"), "100%": on("1") };
const meshes: Record<string, Awaited<ReturnType<typeof startMesh>>> = {};
for (const [name, env] of Object.entries(variants)) {
  for (const k of Object.keys(on("1"))) delete process.env[k];
  Object.assign(process.env, env);
  meshes[name] = await startMesh({ upstreamPort, core: 0, profileFolder: undefined });
}
const totals: Record<string, { cpu: number; n: number }> = {};
const rounds = Number(process.argv[2] ?? 5);
for (const stream of [false, true]) {
  for (let round = -1; round < rounds; round++) {
    for (const [name, mesh] of Object.entries(meshes)) {
      const requests = mesh.keys.map((key) => http(key, stream));
      const before = await mesh.cpuSeconds();
      const r = await runLoad({ port: mesh.port, requests, inFlight: 16, seconds: round < 0 ? 4 : 3 });
      const cpu = (await mesh.cpuSeconds()) - before;
      if (round < 0) continue;
      const t = (totals[`${stream ? "stream" : "json"} ${name}`] ??= { cpu: 0, n: 0 });
      t.cpu += cpu; t.n += r.requests;
    }
  }
}
for (const [name, { cpu, n }] of Object.entries(totals)) console.log(name, n, `${((cpu / n) * 1e6).toFixed(1)} µs CPU/request`);
for (const mesh of Object.values(meshes)) await mesh[Symbol.asyncDispose]();
collector.kill();
