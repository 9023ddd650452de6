// Finds the mesh token, the admin token and the secret that seals: from the environment, or made once and kept in the data
// directory.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Ids } from "#kit/base/ids.ts";
import { sealSecretBytes } from "#kit/base/seal.ts";
import type { AccessTokens } from "#kit/rpc/access.ts";
import type { Config } from "./config.ts";
import { parseSealSecrets, type SealSecrets } from "./config-secrets.ts";
import type { DataDir, KeptFile } from "./data-dir.ts";

/** Files of the data directory in which a run in one process keeps the tokens that it made. */
export const adminTokenFile = "admin-token";
const meshTokenFile = "mesh-token";
const secretsKeyFile = "secrets-key";

/** The tokens of the environment. Missing ones are those of the data directory, made on the first start. */
export function loadTokens(
  dir: DataDir,
  given: { mesh: string[]; admin: string | undefined },
  ids: Ids,
): AccessTokens & { admin: string } {
  const kept = (name: KeptFile) => keptIn(dir, name, () => ids.secret());
  return {
    mesh: given.mesh.length > 0 ? given.mesh : [kept(meshTokenFile)],
    // The operator command of this machine finds it in its file.
    admin: given.admin ?? kept(adminTokenFile),
  };
}

/** The secrets of the environment that seal, or that of the data directory. Undefined: no key is stored. */
export function loadSealSecrets(
  dir: DataDir,
  { sealSecrets, catalog }: Pick<Config, "sealSecrets" | "catalog">,
): SealSecrets | "off" | undefined {
  if (sealSecrets || !catalog.isStored) return sealSecrets;
  return parseSealSecrets(join(dir.path, secretsKeyFile), keptSealSecret(dir));
}

/** The secret of the data directory that seals, made at its first use. */
export function keptSealSecret(dir: DataDir): string {
  return keptIn(dir, secretsKeyFile, () => randomBytes(sealSecretBytes).toString("base64"));
}

function keptIn(dir: DataDir, name: KeptFile, make: () => string): string {
  const known = dir.read(name)?.trim();
  if (known) return known;
  const made = make();
  dir.write(name, `${made}\n`);
  return made;
}
