// Keeps the stored keys of upstreams at hand, sealed, and answers the methods by which operators list, set and delete them. No
// answer has a key.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { maxStoredKeyChars, storedKeyName } from "#common/words/stored-key-name.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { type Seal, WrongSealError } from "#kit/base/seal.ts";
import type { Clock } from "#kit/time/clock.ts";
import { wholeKey } from "#kit/upstream/key-file.ts";
import type {
  CatalogService,
  SetUpstreamKeyRequest,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { hintChars, hintedKeyChars, maxActorChars, maxStoredKeys } from "./limits.ts";
import type { SnapshotSource } from "./source.ts";
import { type StoredKey, type StoredKeyStore, usersOf } from "./stored-key.ts";

/** The stored keys as they are, sealed. */
export interface StoredKeys {
  /** Opens the store. Rejects with WrongSealError where a key is sealed by a secret that this process lacks. */
  open(): Promise<void>;
  /** Reads the store. Where it cannot be read, the last read stands. */
  look(): Promise<void>;
  /** The same list until a key changes. */
  current(): readonly StoredKey[];
  names(): string[];
  /** Calls `listener` after each change, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** Makes them. Without a seal they are listed and deleted alone. */
export function createStoredKeys(store: StoredKeyStore, seal: Seal | undefined): StoredKeys {
  const listeners = new Set<() => void>();
  let keys: readonly StoredKey[] = [];
  return {
    async open() {
      await store.open();
      keys = await store.list();
      if (seal) await judgeSeals(keys, store, seal);
    },
    async look() {
      // A fault of any kind must not end the watch of the catalog, which calls this.
      const found = await store.list().catch(() => keys);
      if (isSame(found, keys)) return;
      keys = found;
      for (const listener of [...listeners]) listener();
    },
    current: () => keys,
    names: () => keys.map(({ name }) => name),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Every seal of a key is another text. */
function isSame(one: readonly StoredKey[], other: readonly StoredKey[]): boolean {
  return one.length === other.length && one.every((key, i) => key.sealed === other[i]?.sealed);
}

/** Keys that an earlier secret has sealed are sealed by the first one from now on. */
async function judgeSeals(
  keys: readonly StoredKey[],
  store: StoredKeyStore,
  seal: Seal,
): Promise<void> {
  const opened = keys.map((key) => ({ key, is: seal.open(key.name, key.sealed) }));
  const shut = opened.filter(({ is }) => is === undefined).map(({ key }) => key.name);
  if (shut.length > 0) throw new WrongSealError(shut.join(", "));
  for (const { key, is } of opened) {
    if (is?.isOld) await store.reseal(key, seal.seal(key.name, is.text));
  }
}

/** The parts that the methods need. */
export interface StoredKeyRoutesDeps {
  source: Pick<SnapshotSource, "current">;
  /** Undefined: a file is the master, and no key is stored. */
  kept: { keys: StoredKeys; store: StoredKeyStore } | undefined;
  /** Undefined: keys cannot be set here. */
  seal: Seal | undefined;
  clock: Clock;
  /** Looks at the store now. */
  look(): Promise<void>;
}

type StoredKeyMethods = Pick<
  ServiceImpl<typeof CatalogService>,
  "listUpstreamKeys" | "setUpstreamKey" | "deleteUpstreamKey"
>;

/** Makes the methods. */
export function storedKeyRoutes(deps: StoredKeyRoutesDeps): StoredKeyMethods {
  const { source, kept, seal, clock, look } = deps;
  const messageOf = ({ name, hint, setAtMs, actor }: StoredKey) => {
    const upstreams = usersOf(source.current(), name);
    return { name, hint, actor, upstreams, setTime: timestampFromMs(setAtMs) };
  };
  const { store, keys } = kept ?? {};
  return {
    async listUpstreamKeys() {
      await look();
      return {
        keys: (keys?.current() ?? []).map(messageOf),
        isOn: kept !== undefined && seal !== undefined,
      };
    },
    async setUpstreamKey(request) {
      if (!store || !keys) return refuse(ErrorReason.STATE_CONFLICT, { message: noStore });
      if (!seal) return refuse(ErrorReason.STATE_CONFLICT, { message: noSecret });
      const { name, key, actor } = readSet(request);
      await look();
      const isNew = !keys.names().includes(name);
      if (isNew && keys.current().length >= maxStoredKeys) {
        refuse(ErrorReason.STATE_CONFLICT, { message: tooMany });
      }
      const hint = key.length < hintedKeyChars ? "" : key.slice(-hintChars);
      const stored = { name, sealed: seal.seal(name, key), hint, setAtMs: clock.now(), actor };
      await store.set(stored);
      await look();
      return { key: messageOf(stored) };
    },
    async deleteUpstreamKey({ name }) {
      await look();
      if (!store || !keys?.names().includes(name)) return refuse(ErrorReason.OBJECT_NOT_FOUND);
      const users = usersOf(source.current(), name);
      if (users.length > 0) {
        const message = `The catalog in force uses this key for ${users.join(", ")}. Put a version in force that does not, and delete it then.`;
        refuse(ErrorReason.STATE_CONFLICT, { message });
      }
      await store.remove(name);
      await look();
      return {};
    },
  };
}

const noStore =
  "A file is the master of this catalog, so no key can be stored. Set GENMESH_CATALOG to store: and its path.";
const noSecret =
  "Stored keys are off, because this process has no secret to seal them with. Set GENMESH_SECRETS_KEY.";
const tooMany = `There are ${maxStoredKeys} stored keys already. Delete one that no upstream uses.`;

function readSet(request: SetUpstreamKeyRequest): SetUpstreamKeyRequest {
  const { name, key, actor } = request;
  if (!storedKeyName.test(name)) invalid("name");
  if (key.length > maxStoredKeyChars || !wholeKey.test(key)) invalid("key");
  if (actor === "" || actor.length > maxActorChars) invalid("actor");
  return request;
}

function invalid(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
