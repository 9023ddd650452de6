import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "../host/process.ts";
import { thisCheckout } from "../support/checkout.ts";

/** The end of each title of the other console. */
export const anotherTitle = "· genmesh, another build";

/** All that runs a gateway from its sources. */
const parts = ["services", "gateway", "proto", "package.json", "package-lock.json"];

/** Makes a copy of this checkout with another console, like that of a newer release. `stack` removes it. */
export async function checkoutOfAnotherConsole(stack: AsyncDisposableStack): Promise<string> {
  const { path } = stack.use(await tempFolder());
  for (const part of parts) {
    await cp(join(thisCheckout, part), join(path, part), {
      recursive: true,
      filter: (file) => !file.endsWith(".test.ts"),
    });
  }
  await symlink(join(thisCheckout, "node_modules"), join(path, "node_modules"));
  // Nearly every file of the build imports this one, so their names differ too.
  const changed = join(path, "gateway/console/app/kit/page.tsx");
  const before = await readFile(changed, "utf8");
  const after = before.replace("· genmesh", anotherTitle);
  if (after === before) throw new Error("the console's titles have another end by now");
  await writeFile(changed, after);
  return path;
}
