// Refuses a catalog that names a model of fal in a form that fal does not have.

import type { FoundFault } from "#kit/base/valid-parts.ts";
import { modelNameFaults } from "../by-template/catalog.ts";
import type { At, OfferedModel } from "../catalog-rules.ts";

/** Owner and app, and the path below the app. */
const name = /^[\w.-]+(\/[\w.-]+)+$/;

/** Models at fal have an owner and an app. */
export function falFaults(model: OfferedModel, at: At): FoundFault[] {
  return modelNameFaults(model, at, name, "must be owner/app at fal, and what is below");
}
