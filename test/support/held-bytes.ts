import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Bytes of buffers in use. Buffers without references are collected before, however busy the machine is. */
export function heldBytes(): number {
  // The second collection waits until the buffers that the first has found are freed.
  for (let i = 0; i < 2; i++) collectGarbage();
  return process.memoryUsage().arrayBuffers;
}
