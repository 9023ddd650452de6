import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { areaOf, isWithin, mayImport, roomOf, rooms, tables } from "./rooms.ts";
import { importCircle, importGraph, importsOf, longestImportChain } from "./support/imports.ts";
import { houseFiles, ownFiles } from "./support/own-files.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const tracked = ownFiles();
const sources = tracked.filter((file) => /\.tsx?$/.test(file) && !file.startsWith("proto/gen/"));
const product = sources.filter((file) => !/\.(test|fixture)\.ts$|^test\/|^bench\//.test(file));
const house = houseFiles();
const text = (file: string) => readFileSync(join(root, file), "utf8");

/** Lines of one file. A larger concept has parts that a reader would look for separately. */
const maxLines = 400;

/** Files in the longest chain of imports, not counting imports of types. A reader opens these to follow one thing to its end. */
const maxImportChain = 22;

/** Drivers, and the files that may import them. */
const drivers: [pattern: RegExp, allowed: RegExp][] = [
  [
    /^node:sqlite$/,
    /^services\/kit\/store\/sqlite(-copy)?\.ts$|^services\/host\/data-dir\.ts$|\.test\.ts$|^(test|bench)\//,
  ],
  [/^mongodb$/, /mongo[a-z-]*\.ts$|^services\/kit\/store\/mongo\/|\.test\.ts$|^test\//],
  [/^@nats-io\//, /^services\/kit\/queue\/|\.test\.ts$|^test\//],
  [/^minio$/, /^services\/kit\/store\/blobs\/|\.test\.ts$|^test\//],
];

describe("the house is tidy", () => {
  test("each file has its room, and each room its files", () => {
    expect(house.filter((file) => !roomOf(file))).toEqual([]);
    const lived = new Set(house.map(roomOf));
    expect(rooms.filter((room) => !lived.has(room))).toEqual([]);
  });

  test("imports follow the law of the rooms", () => {
    const broken = house.flatMap((file) => {
      const values = new Set(importsOf(file, { values: true }));
      return importsOf(file)
        .filter((to) => /^(services|gateway)\//.test(to))
        .filter((to) => values.has(to) || areaOf(to) !== areaOf(file))
        .filter((to) => !mayImport(file, to))
        .map((to) => `${file} imports ${to}`);
    });
    expect(broken).toEqual([]);
  });

  test("no room may import what it does not, and no two rooms each other", () => {
    const pairs = (options?: { values: boolean }) =>
      house.flatMap((file) =>
        importsOf(file, options).map((to) => ({ file, from: roomOf(file), to: roomOf(to) })),
      );
    const used = pairs();
    const dead = rooms.flatMap((room) =>
      room.imports
        .filter((path) => !used.some(({ from, to }) => from === room && isWithin(to, path)))
        .map((path) => `${room.path} imports nothing of ${path}`),
    );
    expect(dead).toEqual([]);
    const ways = new Set(
      pairs({ values: true })
        .filter(({ file, from, to }) => from && to && from !== to && !tables.includes(file))
        .filter(({ from, to }) => !isWithin(from, to?.path) && !isWithin(to, from?.path))
        .map(({ from, to }) => `${from?.path} ${to?.path}`),
    );
    expect([...ways].filter((way) => ways.has(way.split(" ").reverse().join(" ")))).toEqual([]);
  });

  test("the host alone imports the models that are built in", () => {
    const importers = product.filter((file) =>
      importsOf(file).some((to) => to.startsWith("services/builtin/")),
    );
    const strangers = importers.filter((file) => !/^services\/(builtin|host)\//.test(file));
    expect(importers).toContain("services/host/services.ts");
    expect(strangers).toEqual([]);
  });

  test("the gateway and the catalog read the table of protocols, and load no driver", () => {
    const table =
      /^services\/upstreams\/(protocols|capabilities|catalog-rules|optional-fields|[a-z-]+\/(capabilities|catalog)|jobs\/(abilities|declaration|paths))\.ts$/;
    const graph = importGraph(product, { values: true });
    const reached = new Set(product.filter((file) => /^(gateway|services\/catalog)\//.test(file)));
    for (const file of reached) for (const to of graph.get(file) ?? []) reached.add(to);
    const ofUpstreams = [...reached].filter((file) => file.startsWith("services/upstreams/"));
    expect(ofUpstreams).toContain("services/upstreams/protocols.ts");
    expect(ofUpstreams.filter((file) => !table.test(file))).toEqual([]);
  });

  test("imports go one way, and not far", () => {
    const graph = importGraph(house, { values: true });
    expect(importCircle(graph)).toBeUndefined();
    expect(longestImportChain(graph).length).toBeLessThanOrEqual(maxImportChain);
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
    // The console's snippets are code to copy, which reads the environment of its user.
    const tools = /^vitest\.config\.ts$|\/playground\/snippet[a-z-]*\.ts$/;
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
      /^services\/(auth|billing|catalog|text|media|upstreams)\/([a-z-]+\/)*(ledger|chain|key|pricing|usage|job|lifecycle|fairness|dimensions|parse|schema)\.ts$/.test(
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

  test("each file begins with a comment that says why it is there", () => {
    const written = product.filter((file) => /^(services|gateway|deploy)\//.test(file));
    expect(written.filter((file) => !text(file).startsWith("// "))).toEqual([]);
  });

  test("files stay small enough to hold in mind", () => {
    const lengths = sources.map((file) => ({ file, lines: text(file).split("\n").length - 1 }));
    expect(lengths.filter(({ lines }) => lines > maxLines)).toEqual([]);
  });

  test("no test asks for a second try", () => {
    expect(sources.filter((file) => /\bretry: \d|-{2}retry/.test(text(file)))).toEqual([]);
  });

  test("no test compares milliseconds of the machine's clock with a number: promptly() does", () => {
    const bare =
      /expect\([^\n]*\.now\(\) - [^\n]*\)\.toBeLess|expect\([^\n]*\b(?:took|elapsed|waited)\w*Ms\)\.toBeLess|AtMs[^\n]* - \w+\)\.toBeLess/;
    expect(sources.filter((file) => bare.test(text(file)))).toEqual([]);
  });

  test("nothing that is run here takes the ports that a server has by default", () => {
    // Files that may name the default ports: those that read the settings, their tests, and those for a cluster or a container.
    const theirPlace =
      /^services\/host\/config|^services\/host\/cli\/(client|generate)\.ts$|^charts\/|^deploy\/|^test\/(charts|cluster|image)\/|^test\/host\/(readme|api-page)\.test\.ts$|^test\/tidy\.test\.ts$/;
    const run = tracked.filter(
      (file) =>
        /(^|\/)[^.]+$|\.(tsx?|m?js|sh|ya?ml|json)$/.test(file) &&
        !/package-lock\.json$|^proto\/gen\//.test(file) &&
        !theirPlace.test(file),
    );
    expect(run.filter((file) => /\b(8080|9090|9091)\b/.test(text(file)))).toEqual([]);
    // A program without variables for its ports would take the defaults.
    const starts = /services\/host\/main\.(ts|js)|node .*deploy\/warm-up\.ts/;
    const ports = ["PORT", "GRPC_PORT", "GENMESH_OPS_PORT"];
    const starters = [...run, "deploy/Dockerfile"].filter(
      (file) => starts.test(text(file)) && /spawn|startProcess\(|^RUN/m.test(text(file)),
    );
    // The processes of a mesh have the ports of its plan. The bench's test only reads files.
    const spared = /^test\/(mesh\/processes|host\/bench\.test)\.ts$/;
    const silent = starters.filter(
      (file) =>
        !spared.test(file) && !ports.every((port) => new RegExp(`\\b${port}\\b`).test(text(file))),
    );
    expect(starters).toContain("deploy/Dockerfile");
    expect(silent).toEqual([]);
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

  test("no merge left its marks", () => {
    const written = tracked.filter((file) => /\.(ts|tsx|css|md|ya?ml|json|proto|tpl)$/.test(file));
    expect(written.filter((file) => /^(<{7}|>{7}) /m.test(text(file)))).toEqual([]);
  });

  test("names are kebab-case and exports have names", () => {
    const broken = sources.filter((file) => {
      const name = file.split("/").at(-1) ?? "";
      const standard = file === "vitest.config.ts";
      return (
        !/^[a-z0-9]+([.-][a-z0-9]+)*\.tsx?$/.test(name) ||
        (!standard && /^export default/m.test(text(file)))
      );
    });
    expect(broken).toEqual([]);
  });
});
