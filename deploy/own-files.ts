// Finds the files that a program starts or reads by their paths, so that `build.ts` bundles them too.

import { readFile } from "node:fs/promises";
import { dirname, relative, resolve } from "node:path";
import type { Plugin, PluginContext } from "rolldown";

/** `new URL("./file", import.meta.url)` in the form of this repository. A name that ends in a dot or a slash is a folder. */
const reference = /new URL\(\s*"(\.{1,2}\/[^"]*[^"./])",\s*import\.meta\.url,?\s*\)/g;

/**
 * Makes a bundle of each of `programs`. It adds the files that modules name by `import.meta.url`: a program (of a worker, of a child) as
 * one more bundle, any other file unchanged. Each gets its path below `root`, with `.js` for `.ts`. The bundler's own handling of such URLs
 * would copy a program unchanged.
 */
export function ownFiles(root: string, programs: readonly string[]): Plugin {
  const emitted = new Map<string, Promise<string>>();
  const emit = async (context: PluginContext, path: string): Promise<string> => {
    const file = relative(root, path);
    if (!file.endsWith(".ts")) {
      return context.emitFile({ type: "asset", fileName: file, source: await readFile(path) });
    }
    return context.emitFile({ type: "chunk", id: path, fileName: file.replace(/ts$/, "js") });
  };
  const emitOnce = (context: PluginContext, path: string): Promise<string> => {
    const known = emitted.get(path) ?? emit(context, path);
    emitted.set(path, known);
    return known;
  };
  return {
    name: "own-files",
    async buildStart() {
      for (const file of programs) await emitOnce(this, resolve(root, file));
    },
    transform: {
      filter: { id: { include: /\.ts$/, exclude: /node_modules/ }, code: "import.meta.url" },
      async handler(code, id) {
        const places = new Map<string, string>();
        for (const [expression, path = ""] of code.matchAll(reference)) {
          const place = await emitOnce(this, resolve(dirname(id), path));
          places.set(expression, `new URL(import.meta.ROLLUP_FILE_URL_${place})`);
        }
        return code.replace(reference, (expression) => places.get(expression) ?? expression);
      },
    },
  };
}
