// Reads the environment's variables for the secret of the installation, which seals stored keys of upstreams.

import { sealSecretBytes } from "#kit/base/seal.ts";
import { badVariable, type EnvReader } from "./env.ts";
import { readSecretFile } from "./read-secret-file.ts";
import type { Role } from "./roles.ts";

const names = { secrets: "GENMESH_SECRETS_KEY", file: "GENMESH_SECRETS_KEY_FILE" } as const;

/** The secrets that seal: the first seals, and all of them open. */
export type SealSecrets = readonly [Uint8Array, ...Uint8Array[]];

/** The roles that seal keys, or call upstreams with them. No other role gets the secret, even where it is set. */
const roles: ReadonlySet<Role> = new Set(["all", "catalog", "text", "media", "media-worker"]);

/** Reads the secrets. Undefined: none is set, or the role needs none. Off: keys are not stored, though the process could make a secret. */
export function sealSecrets(read: EnvReader, role: Role): SealSecrets | "off" | undefined {
  if (!roles.has(role)) return undefined;
  const [own, file] = [read.text(names.secrets), read.text(names.file)];
  if (own !== undefined && file !== undefined) {
    badVariable(names.file, `must not be set beside ${names.secrets}`);
  }
  if (file !== undefined) return parseSealSecrets(names.file, readSecretFile(names.file, file));
  return own === undefined || own === "off" ? own : parseSealSecrets(names.secrets, own);
}

/** The secrets in a text. A fault names the variable, and never repeats the text. */
export function parseSealSecrets(variable: string, text: string): SealSecrets {
  const [first, ...others] = text.split(",").map((one) => secretIn(variable, one.trim()));
  return [first ?? secretIn(variable, ""), ...others];
}

function secretIn(variable: string, text: string): Uint8Array {
  const bytes = Buffer.from(text, "base64");
  if (bytes.length === sealSecretBytes && /^[\w+/-]{43}=?$/.test(text)) return bytes;
  return badVariable(
    variable,
    `must be the base64 of ${sealSecretBytes} bytes, or several of them, separated by commas${variable === names.secrets ? ", or off" : ""}`,
  );
}
