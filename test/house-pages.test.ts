import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { thisCheckout } from "./support/checkout.ts";
import { housePages } from "./support/house-pages.ts";

test("the picture, the table and the signs of the rooms are those of the house (npm run house)", () => {
  const others = [...housePages()].filter(([path, text]) => {
    const file = join(thisCheckout, path);
    return !existsSync(file) || readFileSync(file, "utf8") !== text;
  });
  expect(others.map(([path]) => path)).toEqual([]);
});
