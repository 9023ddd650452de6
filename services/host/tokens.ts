// Finds the mesh token and the admin token: from the environment, or made once and kept in the data directory.

import type { Ids } from "#kit/base/ids.ts";
import type { AccessTokens } from "#kit/rpc/access.ts";
import type { DataDir, KeptFile } from "./data-dir.ts";

/** Files of the data directory in which a run in one process keeps the tokens that it made. */
export const adminTokenFile = "admin-token";
const meshTokenFile = "mesh-token";

/** The tokens of the environment. Missing ones are those of the data directory, made on the first start. */
export function loadTokens(
  dir: DataDir,
  given: { mesh: string[]; admin: string | undefined },
  ids: Ids,
): AccessTokens & { admin: string } {
  const kept = (name: KeptFile) => {
    const known = dir.read(name)?.trim();
    if (known) return known;
    const made = ids.secret();
    dir.write(name, `${made}\n`);
    return made;
  };
  return {
    mesh: given.mesh.length > 0 ? given.mesh : [kept(meshTokenFile)],
    // The operator command of this machine finds it in its file.
    admin: given.admin ?? kept(adminTokenFile),
  };
}
