import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "vitest";

/** The root of this clone. */
export const root = fileURLToPath(new URL("../..", import.meta.url));
/** The Kubernetes version for rendering, because a helm may be built with another one. */
export const kubernetes = "1.34.0";
/** The custom resources of other products that the charts can make. */
const apiVersions = [
  "monitoring.coreos.com/v1",
  "cert-manager.io/v1",
  "keda.sh/v1alpha1",
  "gateway.networking.k8s.io/v1",
  "external-secrets.io/v1",
];
const run = promisify(execFile);
/** Characters that a rendering may have: the largest has some 150,000. */
const maxOutput = 16 << 20;

/** A program of this machine. */
export interface Tool {
  /** For titles, for example `helm 4`. */
  name: string;
  /** Answers the output. Rejects with the error output. */
  run(...args: string[]): Promise<string>;
}

/** The helms on the path (`helm`, `helm3`, `helm4`), one of each major version. Called while a test file is collected. */
export async function findHelms(): Promise<Tool[]> {
  const found = new Map<string, Tool>();
  for (const file of ["helm", "helm3", "helm4"]) {
    const version = await run(file, ["version", "--template", "{{.Version}}"]).catch(
      () => undefined,
    );
    const major = /^v(\d+)/.exec(version?.stdout ?? "")?.[1];
    if (major && !found.has(major)) found.set(major, tool(`helm ${major}`, file));
  }
  return needs([...found.values()], "helm (3, 4 or both)");
}

/** A program for tests, where the path has it. */
export async function findTool(file: string, versionArgs: string[]): Promise<Tool[]> {
  const found = await run(file, versionArgs).catch(() => undefined);
  if (found) return [tool(file, file)];
  skipped(file);
  return [];
}

/** Renders a chart as release `genmesh` in the namespace `genmesh`. */
export function render(helm: Tool, chart: string, ...args: string[]): Promise<string> {
  const apis = apiVersions.flatMap((version) => ["--api-versions", version]);
  const place = ["--namespace", "genmesh", "--kube-version", kubernetes, ...apis];
  return helm.run("template", "genmesh", `charts/${chart}`, ...place, ...args);
}

/** A missing program makes a skipped test with the reason. With GENMESH_REQUIRE_BACKENDS=1 it is an error. */
function needs(tools: Tool[], what: string): Tool[] {
  if (tools.length > 0) return tools;
  if (process.env.GENMESH_REQUIRE_BACKENDS === "1") throw new Error(`${what} is not on the path`);
  skipped(what);
  return [];
}

// A file in which every test is skipped needs one test.
function skipped(what: string): void {
  process.stderr.write(`skipped: what wants ${what} on the path\n`);
  test.skip(`(skipped: wants ${what} on the path)`, () => {});
}

function tool(name: string, file: string): Tool {
  return {
    name,
    async run(...args) {
      try {
        return (await run(file, args, { cwd: root, maxBuffer: maxOutput })).stdout;
      } catch (error) {
        const { stderr = "", stdout = "" } = error as { stderr?: string; stdout?: string };
        throw new Error(`${stderr}${stdout}`);
      }
    },
  };
}
