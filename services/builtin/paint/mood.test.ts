import { describe, expect, test } from "vitest";
import { createRandom } from "../seed.ts";
import { readMood } from "./mood.ts";

describe("readMood", () => {
  test.each([
    ["A fox in a snowy forest", "forest", "snow"],
    ["Waves on the OCEAN in a storm", "sea", "rain"],
    ["cities of light", "city", undefined],
    ["a ringed planet", "space", undefined],
    ["flowers, with mountains behind", "meadow", "petals"],
    ["Mountains above a meadow", "mountains", undefined],
  ])("%s", (prompt, scene, particles) => {
    const mood = readMood(prompt, createRandom(prompt));
    expect(mood.scene).toBe(scene);
    if (particles !== undefined) expect(mood.particles).toBe(particles);
  });

  test("words inside other words do not count", () => {
    const scenes = Array.from(
      { length: 40 },
      (_, index) => readMood("seasoned scarcity", createRandom(`${index}`)).scene,
    );
    expect(new Set(scenes).size).toBeGreaterThan(3);
  });

  test("the same prompt gives the same mood, its colours vary with the seed", () => {
    const mood = (seed: string) => readMood("city", createRandom(seed));
    expect(mood("a")).toEqual(mood("a"));
    const skies = ["a", "b", "c", "d"].map((seed) => JSON.stringify(mood(seed).palette.sky));
    expect(new Set(skies).size).toBe(4);
  });
});
