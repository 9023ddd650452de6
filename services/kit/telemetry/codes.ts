// Names gRPC's codes for logs and telemetry.

import { Code } from "@connectrpc/connect";

const names = new Map<number, string>(
  Object.entries(Code)
    .filter(([, code]) => typeof code === "number")
    .map(([name, code]) => [
      Number(code),
      name.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase(),
    ]),
);

/** A code as the Connect protocol writes it: `deadline_exceeded`. */
export function codeName(code: Code): string {
  return names.get(code) ?? "unknown";
}
