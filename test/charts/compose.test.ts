import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { bundleOf, programs } from "../../deploy/build.ts";
import { envToConfig, envToOperatorConfig } from "../../services/host/config.ts";
import { root } from "./helm.ts";
import type { Manifest } from "./rendered.ts";

const compose: Manifest = parse(readFileSync(join(root, "deploy/compose.yaml"), "utf8"), {
  merge: true,
});
const roles = ["gateway", "auth", "billing", "catalog", "text", "media", "media-worker"];

/** Like compose with none of the variables set. */
const defaults = (text: string) => text.replace(/\$\{\w+:-([^}]*)\}/g, "$1");

function envOf(service: string): Record<string, string> {
  const entries = Object.entries(compose.services[service].environment as Record<string, string>);
  return {
    HOST: "0.0.0.0",
    ...Object.fromEntries(entries.map(([name, value]) => [name, defaults(value)])),
  };
}

test.each(roles)("%s accepts what it is told, and is asked whether it is ready", (role) => {
  const config = envToConfig(envOf(role));
  expect(config.role).toBe(role);
  expect(config.ports.http.port).toBe(8080);
  for (const url of Object.values(config.peers).flat()) {
    expect(compose.services).toHaveProperty(new URL(url).hostname);
  }
  const service = compose.services[role];
  expect(service.healthcheck.test.join(" ")).toContain("http://127.0.0.1:8080/readyz");
  expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
  expect(Object.keys(service.depends_on)).toContain("migrate");
});

test("what runs once comes after what it needs", () => {
  expect(envToOperatorConfig(envOf("migrate")).stores().database?.kind).toBe("mongodb");
  expect(Object.keys(envToOperatorConfig(envOf("ready")).peers)).toHaveLength(5);
  expect(Object.keys(compose.services.ready.depends_on).sort()).toEqual([...roles].sort());
  for (const one of ["migrate", "ready"]) {
    const file = compose.services[one].entrypoint.find((word: string) => word.endsWith(".js"));
    expect(programs.map(bundleOf)).toContain(file);
  }
});

test("every port of this machine is on the loopback", () => {
  const ports = Object.values<Manifest>(compose.services).flatMap((one) => one.ports ?? []);
  expect(ports.length).toBeGreaterThan(0);
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
});

test("what is mounted from the clone is there", () => {
  const mounts = Object.values<Manifest>(compose.services)
    .flatMap((one) => one.volumes ?? [])
    .map((mount: string) => defaults(mount).split(":")[0] ?? "")
    .filter((source) => source.startsWith("."));
  expect(mounts.length).toBeGreaterThan(5);
  for (const source of mounts) expect(existsSync(join(root, "deploy", source)), source).toBe(true);
});
