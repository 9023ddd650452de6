import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const tracked = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  // What is deleted but still in the index is no part of the house.
  .filter((file) => file !== "" && existsSync(join(root, file)));
const sources = tracked.filter((file) => file.endsWith(".ts") && !file.startsWith("proto/gen/"));
const product = sources.filter((file) => !/\.test\.ts$|^test\/|^bench\//.test(file));
const text = (file: string) => readFileSync(join(root, file), "utf8");

/** Lines of one file: a concept that needs more has parts that a reader would look for separately. */
const maxLines = 400;

/** Drivers, and the files that may import them. */
const drivers: [pattern: RegExp, allowed: RegExp][] = [
  [
    /^node:sqlite$/,
    /^services\/kit\/sqlite\.ts$|^services\/host\/data-dir\.ts$|\.test\.ts$|^test\//,
  ],
  [/^mongodb$/, /mongo[a-z-]*\.ts$|^services\/kit\/mongo\/|\.test\.ts$|^test\//],
  [/^@nats-io\//, /^services\/kit\/queue\/|\.test\.ts$|^test\//],
  [/^minio$/, /^services\/kit\/blobs\/|\.test\.ts$|^test\//],
];

/** What `file` imports: relative paths resolved against the root, packages by name. */
function importsOf(file: string): string[] {
  const found = text(file).matchAll(
    /(?:^|[\s;])(?:import|export)[^"';]*?from\s+"([^"]+)"|import\(\s*"([^"]+)"\s*\)|^import\s+"([^"]+)"/gm,
  );
  return [...found].map((match) => {
    const name = match[1] ?? match[2] ?? match[3] ?? "";
    if (name.startsWith(".")) return relative(root, join(root, dirname(file), name));
    return name.replace(/^#kit\//, "services/kit/").replace(/^#proto\//, "proto/gen/");
  });
}

/** The part of the house that a file lives in. */
function areaOf(file: string): string {
  if (file.startsWith("services/")) return file.split("/").slice(0, 2).join("/");
  return file.startsWith("proto/gen/") ? "proto/gen" : (file.split("/")[0] ?? "");
}

/** The law: who may import whom, inside the product. */
function mayImport(from: string, to: string): boolean {
  if (from === to || to === "proto/gen" || from === "services/host") return true;
  if (from === "gateway" || from.startsWith("services/"))
    return to === "services/kit" && from !== to;
  return true;
}

describe("the house is tidy", () => {
  test("imports follow the law", () => {
    const broken = product.flatMap((file) =>
      importsOf(file)
        .filter((to) => /^(services|gateway|proto)\//.test(to))
        .filter((to) => !mayImport(areaOf(file), areaOf(to)))
        .map((to) => `${file} imports ${to}`),
    );
    expect(broken).toEqual([]);
  });

  test("the product imports nothing of the tests", () => {
    const broken = product
      .filter((file) => /^(services|gateway|bin)\//.test(file))
      .filter((file) =>
        importsOf(file).some((to) => /^(test|bench)\/|\.test\.ts$|^vitest$/.test(to)),
      );
    expect(broken).toEqual([]);
  });

  test("only host/config.ts reads the environment", () => {
    const readers = product.filter((file) => /process\.env|\bfrom "node:process"/.test(text(file)));
    const tools = /^bench\/|^vitest\.config\.ts$/;
    expect(readers.filter((file) => !tools.test(file))).toEqual(["services/host/config.ts"]);
  });

  test("drivers stay in their adapters", () => {
    const broken = sources.flatMap((file) =>
      importsOf(file).flatMap((name) =>
        drivers
          .filter(([driver, allowed]) => driver.test(name) && !allowed.test(file))
          .map(() => `${file} imports ${name}`),
      ),
    );
    expect(broken).toEqual([]);
  });

  test("domain files import no driver, no Connect, no clock of the system", () => {
    const domain = product.filter((file) =>
      /^services\/(auth|billing|catalog|text|media)\/([a-z-]+\/)*(ledger|chain|key|pricing|usage|job|lifecycle|fairness|dimensions|parse|schema)\.ts$/.test(
        file,
      ),
    );
    expect(domain.length).toBeGreaterThan(4);
    const broken = domain.filter(
      (file) =>
        importsOf(file).some((name) =>
          /^@connectrpc|^node:(sqlite|fs|net|http)|^mongodb|^undici|^fastify/.test(name),
        ) || /Date\.now\(\)|new Date\(\)|Math\.random\(/.test(text(file)),
    );
    expect(broken).toEqual([]);
  });

  test("files stay small enough to hold in mind", () => {
    const lengths = sources.map((file) => ({ file, lines: text(file).split("\n").length - 1 }));
    expect(lengths.filter(({ lines }) => lines > maxLines)).toEqual([]);
  });

  test("no path of a machine, no registry host, no promise to do it later", () => {
    const own = tracked.filter(
      (file) =>
        !/^proto\/gen\/|package-lock\.json$|\.(png|woff2?|ttf|jpg|mp3|mp4|gz)$/.test(file) &&
        file !== "test/tidy.test.ts",
    );
    const broken = own.flatMap((file) =>
      [
        ...text(file).matchAll(
          /(?:["'\s(=]\/(?:work|root|home\/\w+|tmp)\/[\w.-]+)|registry\.npmjs\.org|\bTODO\b|\bFIXME\b|[Ff]or now\b|[Nn]ot implemented yet/g,
        ),
      ].map((match) => `${file}: ${match[0].trim()}`),
    );
    expect(broken).toEqual([]);
    for (const lock of tracked.filter((file) => file.endsWith("package-lock.json"))) {
      expect(text(lock), lock).not.toMatch(/"resolved":/);
    }
  });

  test("names are kebab-case and exports have names", () => {
    const broken = sources.filter((file) => {
      const name = file.split("/").at(-1) ?? "";
      const standard = file === "vitest.config.ts" || file === "bench/vitest.config.ts";
      return (
        !/^[a-z0-9]+([.-][a-z0-9]+)*\.ts$/.test(name) ||
        (!standard && /^export default/m.test(text(file)))
      );
    });
    expect(broken).toEqual([]);
  });
});
