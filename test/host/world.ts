import { join } from "node:path";
import { createLogger } from "#kit/base/logger.ts";
import { envToConfig } from "../../services/host/config.ts";
import { type RoleAllProcess, startRoleAll } from "../../services/host/role-all.ts";
import { type CommandEnd, runOperatorCommand } from "../support/operator-command.ts";
import { tempFolder, type Variables } from "./process.ts";

/** A mesh in this process, on a data directory of its own. */
export interface HostWorld extends AsyncDisposable {
  mesh: RoleAllProcess;
  dataDir: string;
}

export const meshToken = "mesh-token-of-the-tests";

/** Starts a mesh on free ports, with the mesh token above. */
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
  const mesh = stack.use(await startRoleAll(config, { log, signal: new AbortController().signal }));
  const owned = stack.move();
  return { mesh, dataDir, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Runs the operator command like its own process, with the variables that find this mesh. `env` and `--server` take precedence. */
export async function runCommand(
  { mesh, dataDir }: Pick<HostWorld, "mesh" | "dataDir">,
  args: readonly string[],
  env: Variables = {},
): Promise<CommandEnd> {
  const server = args.includes("--server") ? [] : ["--server", mesh.grpcAddress];
  return runOperatorCommand([...args, ...server], {
    GENMESH_DATA_DIR: dataDir,
    GENMESH_BASE_URL: mesh.baseUrl,
    ...env,
  });
}
