import { describe, expect, test } from "vitest";
import { examples, type Manifest, ofKind, podsOf, rendered, selects } from "./rendered.ts";

const namesOf = (list: Manifest[]) => list.map((one) => one.metadata.name);
const component = (one: Manifest) => one.metadata.labels["app.kubernetes.io/component"];

describe.each(examples)("%s", (example) => {
  const manifests = rendered(example);
  const policies = ofKind(manifests, "NetworkPolicy");

  test("nothing but the API and its documentation is led in, and the console where it has a host", () => {
    const paths = [
      ...ofKind(manifests, "Ingress").flatMap(({ spec }) =>
        spec.rules.map((rule: Manifest) =>
          rule.http.paths.map((one: Manifest) => `${one.pathType} ${one.path}`).sort(),
        ),
      ),
      ...ofKind(manifests, "HTTPRoute").flatMap(({ spec }) =>
        spec.rules.map((rule: Manifest) =>
          rule.matches
            .map(({ path }: Manifest) => `${path.type.replace("Path", "")} ${path.value}`)
            .sort(),
        ),
      ),
    ];
    const api = ["Exact /openapi.json", "Prefix /docs", "Prefix /v1"];
    const both = [api, ["Prefix /console"]];
    const expected = { production: [api], everything: [...both, ...both] };
    expect(paths).toEqual(expected[example as keyof typeof expected] ?? []);
  });

  test("no secret is written into an object, but by name", () => {
    expect(namesOf(ofKind(manifests, "Secret"))).toEqual([]);
    for (const { name, spec } of podsOf(manifests)) {
      for (const { env = [], command = [] } of spec.containers) {
        for (const one of env) {
          if (!/TOKEN|KEY$|DATABASE_URL|QUEUE_URL|BLOBS_URL/.test(one.name)) continue;
          expect(one.valueFrom?.secretKeyRef?.name, `${name} ${one.name}`).toBeTruthy();
        }
        expect(command.join(" "), name).not.toMatch(/\$\(|gm_/);
      }
    }
  });

  test("everything is denied, and each role may call just those that it is told of", () => {
    const deny = policies.find((one) => one.metadata.name.endsWith("-default-deny"));
    expect(deny.spec).toMatchObject({ policyTypes: ["Ingress", "Egress"] });
    expect(deny.spec.ingress).toBeUndefined();
    for (const { labels } of podsOf(manifests)) {
      expect(selects(deny.spec.podSelector.matchLabels, labels)).toBe(true);
    }
    for (const deployment of ofKind(manifests, "Deployment")) {
      if (component(deployment) === "operator") continue;
      const role = component(deployment);
      const told = deployment.spec.template.spec.containers[0].env
        .filter(
          (one: Manifest) => /^GENMESH_[A-Z]+_URL$/.test(one.name) && one.value?.includes(":8080"),
        )
        .map((one: Manifest) => one.name.slice("GENMESH_".length, -"_URL".length).toLowerCase());
      const own = policies.find(
        (one) => component(one) === role && namesOf([one])[0] !== deny.metadata.name,
      );
      const mayCall = (own.spec.egress ?? []).flatMap((rule: Manifest) =>
        (rule.to ?? []).map(
          (to: Manifest) => to.podSelector?.matchLabels["app.kubernetes.io/component"],
        ),
      );
      expect(mayCall.sort(), role).toEqual(told.sort());
      for (const peer of told) {
        expect(callersOf(policies, peer), `${role} calls ${peer}`).toContain(role);
      }
    }
  });

  test("gRPC is open to namespaces with the label, and to no other", () => {
    for (const { spec } of policies) {
      for (const rule of spec.ingress ?? []) {
        if (!rule.ports.some((one: Manifest) => one.port === 9090)) continue;
        expect(rule.from).toEqual([
          { namespaceSelector: { matchLabels: { "genmesh.io/grpc": "allowed" } } },
        ]);
      }
    }
  });

  test("metrics are scraped from the operations port, by those alone who are named", () => {
    const scraped = ofKind(manifests, "ServiceMonitor").flatMap(({ spec }) => spec.endpoints);
    for (const { port, path } of scraped) {
      expect({ port, path }).toEqual({ port: "ops", path: "/metrics" });
    }
    for (const { spec } of ofKind(manifests, "Service")) {
      const isScraped = spec.ports.some((one: Manifest) => one.name === "ops");
      // Such Services have an address of their own.
      expect(isScraped).toBe(spec.clusterIP === "None");
    }
    for (const { spec } of policies) {
      for (const { ports, from } of spec.ingress ?? []) {
        if (!ports.some((one: Manifest) => one.port === 9091)) continue;
        expect(ports).toHaveLength(1);
        expect(from?.length).toBeGreaterThan(0);
      }
    }
  });

  test("only the gateway's public port is open to all clients, where none is named", () => {
    const open = policies.filter(({ spec }) =>
      (spec.ingress ?? []).some((rule: Manifest) => !rule.from),
    );
    expect(open.map(component)).toEqual(
      ["minimal", "evaluation", "external-secrets"].includes(example) ? ["gateway"] : [],
    );
  });
});

/** Components that may call a role's RPC port. */
function callersOf(policies: Manifest[], role: string): string[] {
  const own = policies.find((one) => component(one) === role);
  return own.spec.ingress.flatMap((rule: Manifest) =>
    (rule.from ?? []).flatMap((from: Manifest) =>
      (from.podSelector?.matchExpressions ?? []).flatMap((one: Manifest) => one.values),
    ),
  );
}

test("streams are neither buffered nor cut by the Ingress", () => {
  const [ingress] = ofKind(rendered("production"), "Ingress");
  expect(ingress.metadata.annotations).toMatchObject({
    "nginx.ingress.kubernetes.io/proxy-buffering": "off",
    "nginx.ingress.kubernetes.io/proxy-read-timeout": "3600",
    "nginx.ingress.kubernetes.io/proxy-next-upstream": "off",
  });
  const [route] = ofKind(rendered("everything"), "HTTPRoute");
  expect(route.spec.rules[0].timeouts).toEqual({ request: "0s", backendRequest: "0s" });
});

test("WebSockets come by the ways of requests, and have their bounds", () => {
  const envOf = (example: string) => {
    const [gateway] = ofKind(rendered(example), "Deployment").filter(
      (one) => component(one) === "gateway",
    );
    const { env } = gateway.spec.template.spec.containers[0];
    return env.filter(({ name }: Manifest) => /^GENMESH_W(EBSOCKETS|S_)/.test(name));
  };
  expect(envOf("production")).toEqual([
    { name: "GENMESH_WS_CONNECTIONS", value: "4096" },
    { name: "GENMESH_WS_IN_FLIGHT", value: "1" },
  ]);
  expect(envOf("everything")).toEqual([
    { name: "GENMESH_WS_CONNECTIONS", value: "8192" },
    { name: "GENMESH_WS_IN_FLIGHT", value: "16" },
  ]);
  expect(envOf("external-secrets")).toEqual([{ name: "GENMESH_WEBSOCKETS", value: "off" }]);
  const protocolOf = (example: string) =>
    ofKind(rendered(example), "Service").find(
      (one) => component(one) === "gateway" && one.spec.clusterIP !== "None",
    ).spec.ports[0].appProtocol;
  expect(["production", "everything"].map(protocolOf)).toEqual([undefined, "kubernetes.io/wss"]);
});

test("the Job of the tokens may make Secrets, and touch the one", () => {
  const [role] = ofKind(rendered("minimal"), "Role");
  expect(role.rules).toEqual([
    { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
    {
      apiGroups: [""],
      resources: ["secrets"],
      resourceNames: ["genmesh-tokens"],
      verbs: ["get", "patch"],
    },
  ]);
  expect(ofKind(rendered("external-secrets"), "Role")).toEqual([]);
});

test("peers find pods by headless Services; outsiders get an address", () => {
  const services = ofKind(rendered("minimal"), "Service");
  const headless = services.filter((one) => one.spec.clusterIP === "None");
  expect(namesOf(headless).sort()).toEqual([
    "genmesh-auth",
    "genmesh-billing",
    "genmesh-catalog",
    "genmesh-gateway-pods",
    "genmesh-media",
    "genmesh-media-worker",
    "genmesh-text",
  ]);
  expect(namesOf(services.filter((one) => one.spec.clusterIP !== "None")).sort()).toEqual([
    "genmesh-auth-grpc",
    "genmesh-billing-grpc",
    "genmesh-catalog-grpc",
    "genmesh-gateway",
    "genmesh-media-grpc",
    "genmesh-text-grpc",
  ]);
});
