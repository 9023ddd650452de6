// `npm run release -- --out FOLDER`: makes the files of a release, without a network and without publishing any. A step whose program
// or variable is missing is skipped by name. `--without STEP` leaves a step out. With `--dry-run` the tree may have changes, and the
// version needs no tag. The notes are then those of the changelog's section "Unreleased".
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { parse, stringify } from "yaml";

const root = fileURLToPath(new URL("..", import.meta.url));
const openapi = join(root, "gateway/openapi.json");
/** The site's generator, which has an install of its own. */
const generator = join(root, "deploy/site/node_modules");
/** Bytes of a program's output. The bill of materials has some 400 kB. */
const maxOutput = 64 << 20;

interface Release {
  version: string;
  /** The commit's full hash. */
  revision: string;
  /** The time of the commit, so that a release that is made again has the same bytes. */
  createdAt: string;
  /** The section of the changelog, without its heading. */
  notes: string;
  /** The folder of the files. */
  out: string;
  /** The key for the signature, as cosign names it: a file, `env://NAME` or a service's address. Undefined: none. */
  signKey: string | undefined;
}

/** A step of a release. Each writes files into the folder. */
interface Step {
  name: string;
  /** Programs that it calls. */
  programs?: readonly string[];
  run(release: Release): Promise<void>;
}

const steps: readonly Step[] = [
  { name: "notes", run: ({ out, notes }) => writeFile(join(out, "notes.md"), `${notes}\n`) },
  { name: "description", run: ({ out }) => cp(openapi, join(out, "openapi.json")) },
  { name: "bill of materials", programs: ["npm"], run: writeBill },
  { name: "charts", programs: ["helm"], run: packageCharts },
  { name: "site", run: packSite },
  { name: "image", programs: ["docker"], run: buildImage },
  { name: "checksums", run: writeChecksums },
  { name: "signature", programs: ["cosign"], run: sign },
];

await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: "string" },
      "dry-run": { type: "boolean", default: false },
      "sign-key": { type: "string" },
      without: { type: "string", multiple: true, default: [] },
    },
  });
  if (values.out === undefined) throw new Error("--out FOLDER is required");
  const out = resolve(values.out);
  await mkdir(out, { recursive: true });
  if ((await readdir(out)).length > 0) throw new Error(`${out} is not empty`);
  const signKey = values["sign-key"];
  const release = { ...(await releaseOf(values["dry-run"])), out, signKey };
  for (const step of steps) {
    const isWanted = !values.without.includes(step.name);
    const missing = isWanted ? await missingOf(step, release) : undefined;
    if (isWanted && missing === undefined) await step.run(release);
    const skipped = isWanted ? `skipped, needs ${missing}` : "skipped, not wanted";
    tell(`${step.name}: ${isWanted && missing === undefined ? "done" : skipped}`);
  }
  tell(`version ${release.version} at ${release.revision}: ${out}`);
}

function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Runs a program. Rejects with its error output where it fails. */
async function call(file: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(file, args, { cwd: root, maxBuffer: maxOutput });
  return stdout;
}

async function git(...args: string[]): Promise<string> {
  return (await call("git", args)).trim();
}

/** The facts of the version at hand. Refuses one that is not ready. */
async function releaseOf(isDry: boolean): Promise<Omit<Release, "out" | "signKey">> {
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const notes = sectionOf(
    await readFile(join(root, "CHANGELOG.md"), "utf8"),
    isDry ? "Unreleased" : version,
  );
  if (notes === undefined) throw new Error(`CHANGELOG.md has no section for ${version}`);
  if (!isDry) {
    if ((await git("status", "--porcelain")) !== "") throw new Error("the tree has changes");
    const tags = (await git("tag", "--points-at", "HEAD")).split("\n");
    if (!tags.includes(`v${version}`)) throw new Error(`the commit has no tag v${version}`);
  }
  const [revision = "", createdAt = ""] = (await git("log", "-1", "--format=%H %cI")).split(" ");
  return { version, revision, createdAt, notes };
}

/** The text below `## [NAME]` of a changelog, up to the next such heading. Undefined: there is none. */
function sectionOf(changelog: string, name: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1);
  const own = sections.find((section) => section.startsWith(`[${name}]`));
  return own?.slice(own.indexOf("\n")).trim();
}

/** The programs, the packages and the key that a step lacks here. Undefined: it can run. */
async function missingOf(
  { programs = [], run }: Step,
  { signKey }: Release,
): Promise<string | undefined> {
  const found = await Promise.all(programs.map((program) => isHere(program)));
  const missing = [
    ...programs.filter((_, index) => !found[index]),
    ...(run === packSite && !existsSync(generator) ? ["npm ci --prefix deploy/site"] : []),
    ...(run === sign && signKey === undefined ? ["--sign-key"] : []),
  ];
  return missing.length === 0 ? undefined : missing.join(" and ");
}

/** Is the program on the path, and does it work? Docker has a server that may be away. */
async function isHere(program: string): Promise<boolean> {
  const args = program === "docker" ? ["buildx", "inspect"] : ["version"];
  return await promisify(execFile)(program, args).then(
    () => true,
    () => false,
  );
}

/** The packages that genmesh runs with, in SPDX's form. */
async function writeBill({ out }: Release): Promise<void> {
  const bill = await call("npm", ["sbom", "--sbom-format", "spdx", "--omit", "dev"]);
  await writeFile(join(out, "sbom.spdx.json"), bill);
}

/** The charts as packages, with the changelog's lines about them where Artifact Hub looks for these. */
async function packageCharts({ out, version, notes }: Release): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-charts-"));
  try {
    for (const name of ["genmesh", "genmesh-backing"]) {
      const chart = join(folder, name);
      await cp(join(root, "charts", name), chart, { recursive: true });
      const file = join(chart, "Chart.yaml");
      const manifest = parse(await readFile(file, "utf8"));
      const changes = { "artifacthub.io/changes": stringify(chartChanges(notes)) };
      const isPre = { "artifacthub.io/prerelease": String(version.includes("-")) };
      manifest.annotations = { ...manifest.annotations, ...changes, ...isPre };
      await writeFile(file, stringify(manifest));
      await call("helm", ["package", chart, "--destination", out]);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The pages of docs/ as a site, in one archive. */
async function packSite({ out, version, createdAt }: Release): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "genmesh-site-"));
  try {
    await call(process.execPath, ["deploy/site/build.ts", "--out", folder]);
    await call("tar", [
      ...["--create", "--gzip", "--file", join(out, `genmesh-docs-${version}.tar.gz`)],
      ...["--sort=name", `--mtime=${createdAt}`, "--owner=0", "--group=0", "--numeric-owner"],
      ...["--directory", folder, "."],
    ]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The lines of the changelog that begin with "Chart:", each with the kind that its heading says. */
function chartChanges(notes: string): { kind: string; description: string }[] {
  return notes.split(/^### /m).flatMap((part) => {
    const kind = part.slice(0, part.indexOf("\n")).trim().toLowerCase();
    const lines = part.split(/^- /m).filter((line) => line.startsWith("Chart: "));
    return lines.map((line) => ({
      kind,
      description: line.replace("Chart: ", "").replace(/\s+/g, " ").trim(),
    }));
  });
}

/** The image for both architectures in one archive, with its provenance and its bill of materials. */
async function buildImage({ out, version, revision, createdAt }: Release): Promise<void> {
  await call("docker", [
    ...["buildx", "build", "--file", "deploy/Dockerfile", "--platform", "linux/amd64,linux/arm64"],
    ...["--build-arg", `VERSION=${version}`, "--build-arg", `REVISION=${revision}`],
    ...["--build-arg", `CREATED=${createdAt}`, "--provenance", "mode=max", "--sbom", "true"],
    ...["--output", `type=oci,dest=${join(out, `genmesh-${version}.oci.tar`)}`, "."],
  ]);
}

/** `SHA256SUMS`, which `sha256sum --check` reads. */
async function writeChecksums({ out }: Release): Promise<void> {
  const names = (await readdir(out)).sort();
  const lines = await Promise.all(
    names.map(async (name) => {
      const sum = createHash("sha256").update(await readFile(join(out, name)));
      return `${sum.digest("hex")}  ${name}\n`;
    }),
  );
  await writeFile(join(out, "SHA256SUMS"), lines.join(""));
}

/** A signature of the checksums, which cover all other files. */
async function sign({ out, signKey = "" }: Release): Promise<void> {
  const sums = join(out, "SHA256SUMS");
  const key = ["--key", signKey, "--yes"];
  await call("cosign", ["sign-blob", ...key, "--bundle", `${sums}.sigstore.json`, sums]);
}
