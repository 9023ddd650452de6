import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { putReadable, type ServerUrls } from "../test/support/stores.ts";
import { noisePicture } from "./accounts.ts";
import type { FloorLayer } from "./floor.ts";
import {
  type GenmeshMesh,
  genmeshNodeArgs,
  scratchFolder,
  startMesh,
  startOneProcess,
  tracingEnv,
} from "./genmesh.ts";
import { startGoModel } from "./gomodel.ts";
import { contestant, type Line } from "./lines.ts";
import { startLiteLlm } from "./litellm.ts";
import { startPortkey } from "./portkey.ts";
import { loadCore, startProgram, targetCore } from "./processes.ts";
import { postRequest, rangeRequest } from "./requests.ts";
import type { Contestant } from "./rounds.ts";
import type { Target, TargetName } from "./target.ts";

/** All programs that run while lines are measured. */
export interface World {
  /** The running targets among those that a line names. */
  contestants(line: Line): Contestant<TargetName>[];
  /** Genmesh, its peers and its floors. */
  targets: readonly Target[];
}

/** The wanted parts of a world. */
export interface WorldOptions {
  one: boolean;
  /** Servers for the mesh's stores. Undefined: no mesh. */
  mesh: ServerUrls | undefined;
  /** Layers of the floor for the lines of this run. */
  floors: ReadonlySet<FloorLayer>;
  /** GoModel's binary. Undefined: it is left out. */
  goModel: string | undefined;
  /** LiteLLM's program. Undefined: it is left out. */
  liteLlm: string | undefined;
  profileFolder: string | undefined;
}

/** Starts the mock, the peer, genmesh, and the programs that their figures are compared with. `stack` ends them. */
export async function startWorld(
  { one, mesh, floors, goModel, liteLlm, profileFolder }: WorldOptions,
  stack: AsyncDisposableStack,
): Promise<World> {
  const upstream = stack.use(startProgram("./upstream.ts", { core: loadCore }));
  const upstreamPort = Number(await upstream.firstLine);
  const options = { upstreamPort, profileFolder };
  const targets: Target[] = [stack.use(await startPortkey(upstreamPort))];
  const beside: Target[] = [directTarget(upstreamPort)];
  let writes: Contestant<TargetName> | undefined;
  for (const layer of floors) targets.push(await startFloor(layer, upstreamPort, stack));
  if (goModel !== undefined) targets.push(stack.use(await startGoModel(goModel, upstreamPort)));
  if (liteLlm !== undefined) targets.push(stack.use(await startLiteLlm(liteLlm, upstreamPort)));
  if (one) {
    targets.push(stack.use(await startOneProcess(options)));
    beside.push(await folderTarget(stack));
    const collector = stack.use(startProgram("./collector.ts", { core: loadCore }));
    const env = tracingEnv(Number(await collector.firstLine));
    targets.push(stack.use(await startOneProcess(options, { name: "traced", env })));
  }
  if (mesh) {
    const genmesh = stack.use(await startMesh(mesh, options));
    targets.push(genmesh);
    beside.push(await bucketTarget(genmesh));
    writes = writesOf(genmesh);
  }
  return {
    targets,
    contestants: (line) =>
      line.targets.flatMap((name) => {
        if (name === "writes") return writes ? [writes] : [];
        const target = [...beside, ...targets].find((each) => each.name === name);
        return target ? [contestant(target, line)] : [];
      }),
  };
}

async function startFloor(
  layer: FloorLayer,
  upstreamPort: number,
  stack: AsyncDisposableStack,
): Promise<Target> {
  const args = [layer, `${upstreamPort}`];
  const child = stack.use(
    startProgram("./floor.ts", { args, core: targetCore, nodeArgs: genmeshNodeArgs }),
  );
  const port = Number(await child.firstLine);
  return { name: `floor-${layer}`, port, pids: [child.pid], requests: plainRequests() };
}

function directTarget(port: number): Target {
  return { name: "direct", port, requests: plainRequests(), pids: [] };
}

/** Requests for the mock, and for programs that pass its paths on unchanged. */
function plainRequests(): Target["requests"] {
  const path = "/v1/responses";
  return {
    json: [postRequest("json", path)],
    stream: [postRequest("stream", path)],
    prompt: [postRequest("prompt", path)],
    paced: [postRequest("paced", `/paced${path}`)],
  };
}

/** A folder's own speed, on genmesh's core: a file over node:http and nothing else. */
async function folderTarget(stack: AsyncDisposableStack): Promise<Target> {
  const file = join(await scratchFolder(stack), "picture.png");
  await writeFile(file, await noisePicture());
  const server = stack.use(startProgram("./folder-server.ts", { args: [file], core: targetCore }));
  const port = Number(await server.firstLine);
  return { name: "folder", port, requests: { range: [rangeRequest("/")] }, pids: [] };
}

/** The bucket's own speed: an object directly from the S3 store, by a signed URL. */
async function bucketTarget({ blobsUrl }: GenmeshMesh): Promise<Target> {
  const url = new URL(await putReadable(blobsUrl, "bench/picture.png", await noisePicture()));
  if (url.protocol !== "http:")
    throw new Error("the bench's load speaks no TLS: it wants s3+http:");
  const range = rangeRequest(`${url.pathname}${url.search}`, { host: url.host });
  return {
    name: "bucket",
    host: url.hostname,
    port: Number(url.port || 80),
    requests: { range: [range] },
    pids: [],
  };
}

function writesOf({ databaseUrl }: GenmeshMesh): Contestant<TargetName> {
  return {
    name: "writes",
    async measure(seconds) {
      const args = [databaseUrl, `${seconds}`];
      await using program = startProgram("./mongo-floor.ts", { args, core: targetCore });
      return { p50Ms: Number(await program.firstLine) };
    },
  };
}
