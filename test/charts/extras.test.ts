import { expect, test } from "vitest";
import { findHelms, kubernetes } from "./helm.ts";
import { type Manifest, ofKind, podsOf, rendered } from "./rendered.ts";

const everything = rendered("everything");
const deploymentOf = (manifests: Manifest[], name: string) =>
  ofKind(manifests, "Deployment").find((one) => one.metadata.name === name);

test("a role takes containers, hosts, DNS, hooks and tokens of the operator's", () => {
  const worker = deploymentOf(everything, "mesh-media-worker");
  const { spec } = worker.spec.template;
  const named = (list: Manifest[]) => list.map(({ name }) => name);
  expect(worker.spec.revisionHistoryLimit).toBe(3);
  expect(named(spec.initContainers)).toEqual(["wait"]);
  expect(named(spec.containers)).toEqual(["media-worker", "side"]);
  expect(spec.hostAliases).toEqual([{ ip: "10.0.0.7", hostnames: ["upstream.internal"] }]);
  expect(spec.dnsConfig.options).toEqual([{ name: "ndots", value: "2" }]);
  const [own] = spec.containers;
  // Its own hook stands beside the one that keeps a pod serving while its address leaves the load balancers.
  expect(Object.keys(own.lifecycle).sort()).toEqual(["postStart", "preStop"]);
  const mount = own.volumeMounts.find((one: Manifest) => one.name === "tokens");
  const volume = spec.volumes.find((one: Manifest) => one.name === "tokens");
  expect(mount).toMatchObject({ mountPath: "/var/run/secrets/genmesh/tokens", readOnly: true });
  expect(volume.projected.sources[0].serviceAccountToken).toMatchObject({ path: "upstream" });
});

test("annotations of the defaults are on every pod of the release, Jobs and the toolbox included", () => {
  const pods = podsOf(everything).filter(({ labels }) => labels !== undefined);
  const templates = everything.flatMap((one: Manifest) => one.spec?.template ?? []);
  expect(pods.length).toBeGreaterThan(8);
  for (const { metadata } of templates.filter((one: Manifest) => one.spec?.containers)) {
    expect(metadata.annotations).toMatchObject({ "example.com/scanned": "yes" });
  }
});

test("Secrets of another store, gRPC and trust in the gateway come from values", () => {
  const [secret] = ofKind(everything, "ExternalSecret");
  expect(secret.spec.data.map((one: Manifest) => one.secretKey)).toEqual([
    "blobs-url",
    "database-url",
    "queue-url",
  ]);
  const routes = ofKind(everything, "GRPCRoute");
  expect(routes.map(({ spec }) => spec.rules[0].matches[0].method.service)).toEqual(
    expect.arrayContaining(["genmesh.text.v1.TextService", "genmesh.media.v1.MediaService"]),
  );
  const services = ofKind(everything, "Service").map((one) => one.metadata.name);
  for (const { spec } of routes) expect(services).toContain(spec.rules[0].backendRefs[0].name);
  const [policy] = ofKind(everything, "BackendTLSPolicy");
  expect(services).toContain(policy.spec.targetRefs[0].name);
  const extra = ofKind(everything, "ConfigMap").map((one) => one.metadata.name);
  expect(extra).toContain("genmesh-extra");
});

test("an alert names the operator's page of the runbook, or none", () => {
  const textOf = (example: "everything" | "production") =>
    JSON.stringify(ofKind(rendered(example), "PrometheusRule"));
  expect(textOf("everything")).toContain("https://docs.example.com/operations#genmeshroledown");
  expect(textOf("production")).not.toContain("runbook_url");
});

test.each(await findHelms())(
  "$name: a changed catalog replaces pods, unless that is off",
  async (helm) => {
    const sumOf = async (...more: string[]) => {
      const text = await helm.run(
        ...["template", "genmesh", "charts/genmesh", "--kube-version", kubernetes],
        ...["--set", "stores.existingSecret=x", "--show-only", "templates/catalog.yaml", ...more],
      );
      return /checksum\/catalog: (\w+)/.exec(text)?.[1];
    };
    const first = await sumOf("--set", "catalog.content=a");
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(await sumOf("--set", "catalog.content=b")).not.toBe(first);
    expect(await sumOf("--set", "catalog.content=a,defaults.checksums=false")).toBeUndefined();
    expect(await sumOf()).toBeUndefined();
  },
);

test.each(await findHelms())(
  "$name: another name is in every object and selector",
  async (helm) => {
    const text = await helm.run(
      ...["template", "prod", "charts/genmesh", "--kube-version", kubernetes],
      ...["--set", "stores.existingSecret=x,nameOverride=api"],
    );
    expect(text).toContain("name: prod-api-gateway");
    expect(text).toContain("app.kubernetes.io/name: api");
    expect(text).not.toContain("app.kubernetes.io/name: genmesh");
  },
);
