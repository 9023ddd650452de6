import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { thisCheckout } from "./checkout.ts";

/** The files of this repository, committed or new, by their path from the root. */
export function ownFiles(): string[] {
  return (
    execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
      cwd: thisCheckout,
      encoding: "utf8",
    })
      .split("\n")
      // A deleted file that is still in the index is left out.
      .filter((file) => file !== "" && existsSync(join(thisCheckout, file)))
  );
}

/** The files that are code of the services and the gateway, without tests. */
export function houseFiles(): string[] {
  return ownFiles().filter(
    (file) => /^(services|gateway)\/.*\.tsx?$/.test(file) && !/\.(test|fixture)\.ts$/.test(file),
  );
}
