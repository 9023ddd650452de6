import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { requestBody } from "./answers.ts";
import { runLoad } from "./load.ts";
import { type BenchMesh, startMesh } from "./mesh.ts";
import { canPin, pinSelf, startProgram } from "./processes.ts";
import { type Comparison, report } from "./report.ts";

const usage = `npm run bench [-- options]: what genmesh adds to a model server that costs nothing

  --seconds N       seconds of each of the eight runs (default 5)
  --only WORDS      comma-separated, of: json, stream, 1, 32
  --profile FOLDER  writes a CPU profile of genmesh there
`;

/** The core of genmesh, and that of the upstream and the load. */
const [meshCore, otherCore] = [0, 1];
const inFlights = [1, 32];
/** Seconds under load, at most, before anything is counted: code is compiled when it has run for a while. */
const maxWarmUpSeconds = 3;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "5" },
      only: { type: "string", default: "json,stream,1,32" },
      profile: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  const seconds = Number(values.seconds);
  if (values.help || !(seconds > 0)) {
    process.stdout.write(usage);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  const only = values.only.split(",");
  pinSelf(otherCore);
  await using upstream = await startProgram("./upstream.ts", { core: otherCore });
  const upstreamPort = Number(upstream.firstLine);
  await using mesh = await startMesh({
    upstreamPort,
    core: meshCore,
    profileFolder: values.profile,
  });
  const comparisons: Comparison[] = [];
  for (const form of ["JSON", "stream"] as const) {
    if (!only.includes(form.toLowerCase())) continue;
    const stream = form === "stream";
    const warmUp = { inFlight: 32, seconds: Math.min(maxWarmUpSeconds, seconds) };
    await runLoad(toMesh(mesh, stream, warmUp));
    for (const inFlight of inFlights.filter((one) => only.includes(`${one}`))) {
      process.stderr.write(`${form}, ${inFlight} in flight …\n`);
      const load = { inFlight, seconds };
      const direct = await runLoad({
        ...load,
        port: upstreamPort,
        requests: [httpRequest("", stream)],
      });
      const before = await mesh.cpuSeconds();
      const through = await runLoad(toMesh(mesh, stream, load));
      const cpuSeconds = (await mesh.cpuSeconds()) - before;
      const cpuMicros = (cpuSeconds / through.requests) * 1e6;
      comparisons.push({ form, inFlight, direct, mesh: through, cpuMicros });
    }
  }
  const model = cpus()[0]?.model ?? "unknown CPU";
  const pinned = canPin ? "genmesh on one core, load and upstream on another" : "cores not pinned";
  process.stdout.write(`\n${model}, Node ${process.versions.node}; ${pinned}\n`);
  process.stdout.write(`${report(comparisons)}\n`);
}

function toMesh(mesh: BenchMesh, stream: boolean, load: { inFlight: number; seconds: number }) {
  const requests = mesh.keys.map((key) => httpRequest(key, stream));
  return { ...load, port: mesh.port, requests };
}

/** A request of the Responses API as it goes over the wire. */
function httpRequest(key: string, stream: boolean): Buffer {
  const body = requestBody(stream);
  const head = [
    "POST /v1/responses HTTP/1.1",
    "host: 127.0.0.1",
    `authorization: Bearer ${key}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
}

await main();
