// Loads the MongoDB driver only where MongoDB is used.

import { createRequire } from "node:module";

type Driver = typeof import("mongodb");

const require = createRequire(import.meta.url);
let driver: Driver | undefined;

/** The driver's classes, loaded with their first use. Processes without MongoDB import the adapters, too. */
export function mongodb(): Driver {
  driver ??= require("mongodb") as Driver;
  return driver;
}
