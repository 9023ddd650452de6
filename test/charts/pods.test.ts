import { describe, expect, test } from "vitest";
import { bundleOf, programs } from "../../deploy/build.ts";
import { envToConfig, envToOperatorConfig } from "../../services/host/config.ts";
import { examples, type Manifest, ofKind, podsOf, rendered, selects } from "./rendered.ts";

const secretValues: Record<string, string> = {
  GENMESH_DATABASE_URL: "mongodb://user:pass@db:27017/genmesh",
  GENMESH_QUEUE_URL: "nats://user:pass@nats:4222",
  GENMESH_BLOBS_URL: "s3+https://access:secret@s3:443/bucket?region=r",
  GENMESH_ALERT_WEBHOOK_URL: "https://hooks.example.com/genmesh",
  GENMESH_ALERT_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32).toString("base64")}`,
  GENMESH_ALERT_SMTP_URL: "smtps://user:pass@mail.example.com",
};

const isToolbox = (one: Manifest) => one.metadata.name.endsWith("-toolbox");

/** The environment of a container. */
function envOf(container: Manifest): Record<string, string> {
  const image = { GENMESH_DATA_DIR: "/var/lib/genmesh", HOST: "0.0.0.0" };
  const entries = (container.env ?? []).map(({ name, value, valueFrom }: Manifest) => [
    name,
    valueFrom ? (secretValues[name] ?? "a-secret-of-twenty-characters") : value,
  ]);
  return { ...image, ...Object.fromEntries(entries) };
}

describe.each(examples)("%s", (example) => {
  const manifests = rendered(example);
  const deployments = ofKind(manifests, "Deployment").filter((one) => !isToolbox(one));

  test("every role accepts what it is told, and listens where its ports say", () => {
    expect(deployments).toHaveLength(7);
    for (const { metadata, spec } of deployments) {
      const role = metadata.labels["app.kubernetes.io/component"];
      const container = spec.template.spec.containers[0];
      const config = envToConfig(envOf(container));
      expect(config.role).toBe(role);
      expect(config.ports.http).toEqual({ host: "0.0.0.0", port: 8080 });
      const ports = Object.fromEntries(
        container.ports.map((one: Manifest) => [one.name, one.containerPort]),
      );
      expect(ports).toEqual({
        http: 8080,
        ...(config.ports.grpc ? { grpc: config.ports.grpc.port } : {}),
        ops: config.ports.ops.port,
      });
    }
  });

  test("a role's peers are Services of the release", () => {
    const services = new Set(ofKind(manifests, "Service").map((one) => one.metadata.name));
    for (const { spec } of deployments) {
      const { peers } = envToConfig(envOf(spec.template.spec.containers[0]));
      for (const url of Object.values(peers).flat()) {
        expect(services).toContain(new URL(url).hostname);
        expect(new URL(url).port).toBe("8080");
      }
    }
  });

  test("probes ask the operations port, which is plain and bound where the kubelet comes in", () => {
    for (const { spec } of deployments) {
      const container = spec.template.spec.containers[0];
      expect(envToConfig(envOf(container)).ports.ops.host).toBe("0.0.0.0");
      expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "ops" });
      expect(container.livenessProbe.httpGet).toEqual({ path: "/healthz", port: "ops" });
    }
  });

  test("a pod has the time that it needs to stop, and is replaced before it goes", () => {
    for (const { spec } of deployments) {
      const pod = spec.template.spec;
      const { drainMs } = envToConfig(envOf(pod.containers[0]));
      const preStop = pod.containers[0].lifecycle.preStop.sleep.seconds;
      expect(pod.terminationGracePeriodSeconds).toBe(preStop + drainMs / 1_000 + 15);
      expect(spec.strategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
    }
  });

  test("every pod is locked down", () => {
    for (const { name, spec } of podsOf(manifests)) {
      expect(spec.securityContext, name).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 65532,
        seccompProfile: { type: "RuntimeDefault" },
      });
      expect(spec.enableServiceLinks, name).toBe(false);
      // Only the Job that makes the tokens calls the API server.
      const wantsToken = spec.serviceAccountName?.endsWith("-tokens") ?? false;
      expect(spec.automountServiceAccountToken, name).toBe(wantsToken);
      for (const { securityContext, resources } of spec.containers) {
        expect(securityContext, name).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        expect(resources.limits.memory, name).toBeDefined();
      }
    }
  });

  test("what is mounted is there to be mounted", () => {
    for (const { name, spec } of podsOf(manifests)) {
      const volumes = spec.volumes.map((one: Manifest) => one.name).sort();
      const mounted = spec.containers[0].volumeMounts.map((one: Manifest) => one.name).sort();
      expect(mounted, name).toEqual(volumes);
    }
  });

  test("Services, budgets, policies and autoscalers mean pods that there are", () => {
    const pods = podsOf(manifests).map(({ labels }) => labels);
    const chosen = [
      ...ofKind(manifests, "Service").map((one) => [one.metadata.name, one.spec.selector]),
      ...ofKind(manifests, "PodDisruptionBudget").map((one) => [
        one.metadata.name,
        one.spec.selector.matchLabels,
      ]),
    ];
    for (const [name, selector] of chosen) {
      expect(
        pods.filter((labels) => selects(selector, labels)),
        name,
      ).toHaveLength(1);
    }
    const names = new Set(deployments.map((one) => one.metadata.name));
    for (const kind of ["HorizontalPodAutoscaler", "ScaledObject"]) {
      for (const { spec } of ofKind(manifests, kind)) {
        expect(names).toContain(spec.scaleTargetRef.name);
        const target = deployments.find((one) => one.metadata.name === spec.scaleTargetRef.name);
        expect(target.spec).not.toHaveProperty("replicas");
      }
    }
  });

  test("every program that a pod is told to run is there", () => {
    for (const { name, spec } of podsOf(manifests)) {
      const program = spec.containers[0].command?.find((word: string) => word.endsWith(".js"));
      if (program) expect(programs.map(bundleOf), name).toContain(program);
    }
  });

  test("the Jobs of the operator find their servers and their token", () => {
    for (const { name, spec } of podsOf(manifests)) {
      if (!/bootstrap|smoke|migrate|toolbox/.test(name)) continue;
      const config = envToOperatorConfig(envOf(spec.containers[0]));
      if (name.includes("migrate")) expect(config.stores().database?.kind).toBe("mongodb");
      else expect(Object.keys(config.peers)).toHaveLength(5);
    }
  });
});
