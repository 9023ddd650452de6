// Adds the option `--secret-file`, by which a command writes a new secret into a file in place of the terminal. The host reads
// secrets by another file: `../read-secret-file.ts`.

import { type FileHandle, open, rm } from "node:fs/promises";
import type { Command } from "commander";

/** Adds `--secret-file <file>`: the secret goes into a new file of its owner, and neither to a terminal nor into a log. */
export function secretFileOption(command: Command): Command {
  return command.option(
    "--secret-file <file>",
    "write the secret into this new file, readable by its owner alone, and print it nowhere",
  );
}

/** The value of {@link secretFileOption}. */
export interface SecretFileOption {
  secretFile?: string;
}

/** A file that waits for a secret. Without one it is removed, when this is disposed. */
export interface SecretFile extends AsyncDisposable {
  keep(secret: string): Promise<void>;
}

/**
 * Makes the file before the server makes the secret, which is shown once: a folder without write access is found while nothing is lost.
 * Rejects where there is such a file already. Undefined where no file is wanted.
 */
export async function openSecretFile({
  secretFile: path,
}: SecretFileOption): Promise<SecretFile | undefined> {
  if (path === undefined) return undefined;
  const file = await open(path, "wx", 0o600);
  let isKept = false;
  return {
    async keep(secret) {
      if (secret === "") return;
      await write(file, secret);
      isKept = true;
    },
    async [Symbol.asyncDispose]() {
      await file.close();
      if (!isKept) await rm(path, { force: true });
    },
  };
}

async function write(file: FileHandle, secret: string): Promise<void> {
  await file.writeFile(`${secret}\n`);
  await file.sync();
}
