// Opens the stored keys of upstreams as they come with the catalog, and finds the key that a catalog names, wherever it is.

import type { Logger } from "#kit/base/logger.ts";
import { createSeal, type Seal } from "#kit/base/seal.ts";
import { storedKeyPrefix } from "#kit/upstream/key-file.ts";
import type { SealedKey } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Config } from "./config.ts";
import type { SealSecrets } from "./config-secrets.ts";

/** The keys of upstreams that this process has. */
export interface UpstreamKeys {
  /** Seals keys that operators store. Undefined: this process has no secret for it. */
  seal: Seal | undefined;
  /** Takes all stored keys, in place of those before. */
  take(keys: readonly SealedKey[]): void;
  /** The key of a name: in a variable, in a file, or stored. Undefined: there is none. */
  secret: Config["secret"];
}

/** Makes them. */
export function createUpstreamKeys(
  { config, log }: { config: Config; log: Logger },
  secrets: SealSecrets | "off" | undefined,
): UpstreamKeys {
  const seal = secrets && secrets !== "off" ? createSeal(secrets) : undefined;
  let stored: ReadonlyMap<string, string> = new Map();
  return {
    seal,
    take(keys) {
      const opened = keys.flatMap(({ name, sealed }): [string, string][] => {
        const text = seal?.open(name, sealed)?.text;
        return text === undefined ? [] : [[name, text]];
      });
      stored = new Map(opened);
      const shut = keys.map(({ name }) => name).filter((name) => !stored.has(name));
      if (shut.length === 0) return;
      const why = seal ? "is not the secret that sealed them" : "is not set";
      log.error({ keys: shut }, `stored keys cannot be opened: GENMESH_SECRETS_KEY ${why}`);
    },
    secret: (name) =>
      name.startsWith(storedKeyPrefix)
        ? stored.get(name.slice(storedKeyPrefix.length))
        : config.secret(name),
  };
}
