import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runOperatorCommand } from "../support/operator-command.ts";
import { runHost, startRunning, tempFolder } from "./process.ts";

const fresh = () => randomBytes(32).toString("base64");

test("a secret that opens no stored key: exit 1, in one line that names the variable and the key", async () => {
  await using folder = await tempFolder();
  const [dataDir, file] = [join(folder.path, "data"), join(folder.path, "key.txt")];
  await writeFile(file, "sk-of-an-upstream");
  const env = { GENMESH_DATA_DIR: dataDir };
  {
    await using running = await startRunning(env);
    const server = ["--server", running.grpcAddress];
    const command = ["catalog", "set-key", "fal", "--key-file", file, ...server];
    expect(await runOperatorCommand(command, env)).toMatchObject({ code: 0 });
  }
  const made = (await readFile(join(dataDir, "secrets-key"), "utf8")).trim();
  const wrong = fresh();
  const { code, stdout, stderr } = await runHost({ ...env, GENMESH_SECRETS_KEY: wrong });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr.trim().split("\n").at(-1)).toMatch(
    /^genmesh: GENMESH_SECRETS_KEY must be the secret that sealed .* does not open fal: set /,
  );
  expect(stderr).not.toContain(wrong);

  // The earlier secret behind the new one opens it, and off starts without the key.
  for (const secrets of ["off", `${wrong},${made}`, wrong]) {
    await using running = await startRunning({ ...env, GENMESH_SECRETS_KEY: secrets });
    const server = ["--server", running.grpcAddress];
    const listed = await runOperatorCommand(["catalog", "keys", "--json", ...server], env);
    expect(JSON.parse(listed.out)).toMatchObject({
      keys: [{ name: "fal" }],
      isOn: secrets !== "off",
    });
  }
});
