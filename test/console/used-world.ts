import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Caller } from "../e2e/caller.ts";
import {
  ended,
  heldImages,
  type MediaWorld,
  startMediaWorld,
  submit,
  upload,
} from "../e2e/media-world.ts";

export const everyScope = Object.values(Scope).filter(
  (scope) => typeof scope === "number" && scope > 0,
);

/** A world with a key with all rights. The key has a request, a file, a job that has ended and one that is held at its upstream. */
export interface UsedWorld extends AsyncDisposable {
  made: MediaWorld;
  owner: Caller;
  origin: string;
}

export async function startUsedWorld(operatorToken: string): Promise<UsedWorld> {
  await using stack = new AsyncDisposableStack();
  const made = stack.use(await startMediaWorld({ env: { GENMESH_ADMIN_TOKEN: operatorToken } }));
  const { world, media, png } = made;
  const first = await world.caller({ credits: 100n });
  const owner = await world.withKey(first, { name: "owner", scopes: everyScope });
  const held = heldImages(png);
  stack.defer(held.open);
  media.next("POST /images/generations", held.behaviour);
  await submit(owner, "images", { model: "scripted-image", prompt: "a boat" });
  await ended(owner, await submit(owner, "images", { model: "small-image", prompt: "a boat" }));
  await owner.post("/responses", { model: "chat-1", input: "Hello" });
  await upload(owner, png);
  const owned = stack.move();
  const { origin } = new URL(world.baseUrl);
  return { made, owner, origin, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
