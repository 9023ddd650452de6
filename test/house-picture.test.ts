import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { drawHouse } from "./support/house-picture.ts";

test("the picture in docs/architecture.md is the house as it stands (npm run picture)", () => {
  const committed = readFileSync(new URL("../docs/architecture.svg", import.meta.url), "utf8");
  expect(committed).toBe(drawHouse());
});
