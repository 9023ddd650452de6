import { afterEach, describe } from "vitest";
import { type BackendName, findBackend } from "./backends.ts";
import { ownStores } from "./stores.ts";
import { type OpenWorldStores, openWorldStores, type StoreVariables } from "./world-stores.ts";

const all: readonly BackendName[] = ["mongodb", "nats", "s3"];

/** Tests that want all the servers of a mesh, or nothing but a word of why not. */
export async function describeWithServers(title: string, tests: () => void): Promise<void> {
  const found = await Promise.all(all.map(findBackend));
  const notes = found.map(({ note }) => note).join("");
  describe.skipIf(found.some(({ url }) => !url))(`${title}${notes}`, tests);
}

/**
 * Tests of worlds whose database and blobs are on servers, removed after each test. Wake-ups stay in the process: they are
 * no more than hints, and go by the test's clock.
 */
export function describeOnServers(
  title: string,
  tests: (openStores: OpenWorldStores) => void,
): Promise<void> {
  return describeWithServers(title, () => {
    const places = new Map<string, StoreVariables>();
    let stack = new AsyncDisposableStack();
    afterEach(async () => {
      const ended = stack;
      stack = new AsyncDisposableStack();
      places.clear();
      await ended.disposeAsync();
    });
    tests(async (folder, clock) => {
      const place = places.get(folder) ?? (await newPlace(stack));
      places.set(folder, place);
      return openWorldStores({ folder, clock, env: place });
    });
  });
}

async function newPlace(stack: AsyncDisposableStack): Promise<StoreVariables> {
  const stores = await ownStores(stack, "test");
  if (!stores) throw new Error("there is no server for one of the stores");
  return { GENMESH_DATABASE_URL: stores.urls.mongodb, GENMESH_BLOBS_URL: stores.urls.s3 };
}
