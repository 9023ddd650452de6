import { maxImages, waryTransitions } from "./limits.ts";
import type { Image } from "./store-mongo-wallets.ts";

/** Wallets as this process last wrote them, so that the next batch needs no read. The least recently used is forgotten. */
export interface Images {
  get(name: string): Image | undefined;
  put(image: Image): void;
  drop(name: string): void;
  /** Another process works on this wallet too: for some transitions reading it costs less than losing a race. */
  distrust(name: string): void;
}

/** Makes an empty cache. */
export function createImages(): Images {
  const images = new Map<string, Image>();
  const wary = new Map<string, number>();
  return {
    get: (name) => images.get(name),
    put(image) {
      const { name } = image;
      const left = wary.get(name) ?? 0;
      wary.delete(name);
      if (left > 1) wary.set(name, left - 1);
      images.delete(name);
      if (left === 0) keep(images, name, image);
    },
    drop: (name) => images.delete(name),
    distrust(name) {
      images.delete(name);
      wary.delete(name);
      keep(wary, name, waryTransitions);
    },
  };
}

function keep<T>(map: Map<string, T>, name: string, value: T): void {
  map.set(name, value);
  if (map.size <= maxImages) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
