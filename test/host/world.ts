import { join } from "node:path";
import { createLogger } from "#kit/logger.ts";
import { createProgram } from "../../services/host/cli/program.ts";
import { envToConfig, envToOperatorConfig } from "../../services/host/config.ts";
import { type Mesh, startMesh } from "../../services/host/mesh.ts";
import { tempFolder, type Variables } from "./process.ts";

/** A mesh in this process, on a data directory of its own. */
export interface HostWorld extends AsyncDisposable {
  mesh: Mesh;
  dataDir: string;
}

export const meshToken = "mesh-token-of-the-tests";

/** Starts it on free ports, with the mesh token above. */
export async function startHostWorld(env: Variables = {}): Promise<HostWorld> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await tempFolder());
  const dataDir = join(folder.path, "data");
  const config = envToConfig({
    PORT: "0",
    GRPC_PORT: "0",
    GENMESH_OPS_PORT: "0",
    GENMESH_DATA_DIR: dataDir,
    GENMESH_MESH_TOKEN: meshToken,
    ...env,
  });
  const log = createLogger("silent");
  const mesh = stack.use(await startMesh(config, { log, signal: new AbortController().signal }));
  const owned = stack.move();
  return { mesh, dataDir, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Runs the operator command as its process would, with what it needs to find this mesh; `env` and `--server` win. */
export async function runCommand(
  { mesh, dataDir }: Pick<HostWorld, "mesh" | "dataDir">,
  args: readonly string[],
  env: Variables = {},
): Promise<{ code: number; out: string; err: string }> {
  const said = { out: "", err: "" };
  const program = createProgram({
    config: envToOperatorConfig({
      GENMESH_DATA_DIR: dataDir,
      GENMESH_BASE_URL: mesh.baseUrl,
      ...env,
    }),
    out: (text) => {
      said.out += text;
    },
    err: (text) => {
      said.err += text;
    },
  });
  const server = args.includes("--server") ? [] : ["--server", mesh.grpcAddress];
  const code = await program.run([...args, ...server]);
  return { code, ...said };
}
