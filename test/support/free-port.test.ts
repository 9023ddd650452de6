import { expect, test } from "vitest";
import { portsFrom } from "../../services/host/run-mesh/ports.ts";
import { freeMeshPorts, freePort } from "./free-port.ts";

test("what a mesh finds its ports among is given to nobody else, also while its processes are away", async () => {
  const [first] = await Promise.all([freeMeshPorts(), freeMeshPorts()]);
  const ofMesh = portsFrom("127.0.0.1", first);
  const mesh = new Set<number>();
  for (let n = 0; n < 45; n++) mesh.add(await ofMesh());
  const others = await Promise.all(Array.from({ length: 45 }, () => freePort()));
  expect(others.filter((port) => mesh.has(port))).toEqual([]);
  expect(new Set(others).size).toBe(45);
});
