import { execFile } from "node:child_process";
import { cp, readFile, stat, symlink } from "node:fs/promises";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { tempFolder } from "../host/process.ts";
import { meshToken, startHostWorld } from "../host/world.ts";

// The programs of examples/grpc run, by the commands of their page.

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const page = await readFile(join(root, "examples/grpc/README.md"), "utf8");
/** A Python that has the client's packages. By default the one on the path. */
const python = process.env.PYTHON ?? "python3";

/** The commands that tell whether a language is there with its packages, and what is needed for that. */
const languages = {
  Python: {
    command: [python, "-c", "import grpc, grpc_status, grpc_tools"],
    needs: "examples/grpc/python/requirements.txt installed (PYTHON names another python3)",
  },
  Go: { command: ["go", "mod", "download"], needs: "Go, and the modules of examples/grpc/go" },
} as const;

test.for(["Python", "Go"] as const)("the program in %s", async (language, { skip }) => {
  const why = await missing(language);
  skip(why !== undefined, why);
  await using world = await startHostWorld();
  await using clone = await tempFolder();
  // The commands write into their folder, so they get a clone of what they read.
  await cp(join(root, "examples"), join(clone.path, "examples"), { recursive: true });
  for (const name of ["proto", "buf.yaml", "node_modules"]) {
    await symlink(join(root, name), join(clone.path, name));
  }
  const block = new RegExp(`## ${language}\n[^]+?\`\`\`sh\n([^]+?)\`\`\``).exec(page)?.[1] ?? "";
  const commands = block.replace(/^pip install .*\n/m, "");
  const { stdout } = await run("sh", ["-ec", commands], {
    cwd: clone.path,
    env: {
      ...process.env,
      PATH: [...(isAbsolute(python) ? [dirname(python)] : []), process.env.PATH].join(delimiter),
      ADDRESS: world.mesh.grpcAddress,
      BASE_URL: world.mesh.baseUrl,
      GENMESH_ADMIN_TOKEN: world.mesh.adminToken,
      GENMESH_MESH_TOKEN: meshToken,
    },
  });
  const file = join(clone.path, "examples/grpc", language.toLowerCase(), "fox.png");
  const { size } = await stat(file);
  expect((await readFile(file)).subarray(1, 4).toString()).toBe("PNG");
  const [answer, ...rest] = stdout.trim().split("\n");
  expect(answer).toMatch(/\w+ \w+/);
  expect(rest.at(-2)).toBe("JOB_STATUS_COMPLETED 100");
  expect(rest.at(-1)).toMatch(new RegExp(`^fox\\.png: ${size} bytes, [1-9]\\d* credits$`));
});

/** Why a program cannot run here. Undefined: it can. */
async function missing(language: keyof typeof languages): Promise<string | undefined> {
  const { command, needs } = languages[language];
  const [file, ...args] = command;
  const cwd = join(root, "examples/grpc", language.toLowerCase());
  const isThere = await run(file, args, { cwd, timeout: 120_000 }).then(
    () => true,
    () => false,
  );
  if (isThere) return undefined;
  process.stderr.write(`skipped: the gRPC example in ${language} needs ${needs}\n`);
  return `needs ${needs}`;
}
