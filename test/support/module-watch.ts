import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";

/** Imported by a process of a test. Writes the URL of each module that its main thread loads to `MODULES_FILE`, one a line. */

const file = process.env.MODULES_FILE ?? "";
registerHooks({
  load(url, context, next) {
    appendFileSync(file, `${url}\n`);
    return next(url, context);
  },
});
