import { afterAll, afterEach, describe } from "vitest";
import { type BackendName, findBackend } from "./backends.ts";
import { createDatabases, type Databases } from "./databases.ts";
import { ownBucket, withPath } from "./stores.ts";
import { type OpenWorldStores, openWorldStores, type StoreVariables } from "./world-stores.ts";

const all: readonly BackendName[] = ["mongodb", "nats", "s3"];

/** Tests that need all servers of a mesh. Without them, a skipped test shows the reason. */
export async function describeWithServers(title: string, tests: () => void): Promise<void> {
  const found = await Promise.all(all.map(findBackend));
  const notes = found.map(({ note }) => note).join("");
  describe.skipIf(found.some(({ url }) => !url))(`${title}${notes}`, tests);
}

/**
 * Tests of worlds whose database and blobs are on servers. Each has a bucket of its own, and databases are used one after the other.
 * Wake-ups stay in the process, because they are only hints, and follow the test's clock.
 */
export async function describeOnServers(
  title: string,
  tests: (openStores: OpenWorldStores) => void,
): Promise<void> {
  const [mongodb, s3] = await Promise.all([findBackend("mongodb"), findBackend("s3")]);
  await describeWithServers(title, () => {
    const urls = { mongodb: mongodb.url ?? "", s3: s3.url ?? "" };
    const databases = createDatabases(urls.mongodb);
    const places = new Map<string, StoreVariables>();
    let stack = new AsyncDisposableStack();
    afterEach(async () => {
      const ended = stack;
      stack = new AsyncDisposableStack();
      places.clear();
      await ended.disposeAsync();
    });
    afterAll(() => databases[Symbol.asyncDispose]());
    tests((folder, clock) => {
      const place = places.get(folder) ?? newPlace(stack, urls, databases);
      places.set(folder, place);
      return openWorldStores({ folder, clock, env: place });
    });
  });
}

function newPlace(
  stack: AsyncDisposableStack,
  { mongodb, s3 }: { mongodb: string; s3: string },
  databases: Databases,
): StoreVariables {
  const name = databases.take();
  stack.defer(() => databases.leave(name));
  return {
    GENMESH_DATABASE_URL: withPath(mongodb, name),
    GENMESH_BLOBS_URL: ownBucket(stack, s3, "test"),
  };
}
