import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { CatalogService } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { RpcAccess, rpc_access } from "#proto/genmesh/common/v1/rpc_access_pb.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { meshToken, startHostWorld } from "../host/world.ts";
import { reflectPort } from "./grpc-reflected.ts";

// docs/internal-api.md is true, and its program runs unchanged.

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(`${root}docs/internal-api.md`, "utf8");

test("the table of methods is that of the contract", () => {
  const services = { auth: AuthService, billing: BillingService, catalog: CatalogService };
  for (const [name, service] of Object.entries({
    ...services,
    text: TextService,
    media: MediaService,
  })) {
    const row = page.split("\n").find((line) => line.startsWith(`| \`${name}\` |`));
    const cells = row?.split("|").slice(2, 5) ?? [];
    const methods = cells.map((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, method]) => method));
    const { UNSPECIFIED, PRINCIPAL, ADMIN } = RpcAccess;
    expect([name, ...methods]).toEqual([
      name,
      ...[UNSPECIFIED, PRINCIPAL, ADMIN].map((access) => methodsWith(service, access)),
    ]);
  }
});

test("the program for grpc-js prints a balance and a streamed answer", async () => {
  await using world = await startHostWorld();
  using port = await reflectPort(world.mesh.grpcAddress, { token: meshToken });
  const admin = { token: world.mesh.adminToken };
  const auth = port.service("genmesh.auth.v1.AuthService");
  const { key } = await auth.call("CreateAccount", { name: "Example" }, admin);
  const { account_id, key_id } = key as { account_id: string; key_id: string };
  const grant = { account_id, unit: "UNIT_USD_MICROS", amount: "5000000", operation_id: "first" };
  await port.service("genmesh.billing.v1.BillingService").call("Grant", grant, admin);
  const program = /```js\n(.+?)```/s.exec(page)?.[1] ?? "";
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", program],
    {
      cwd: root,
      env: {
        ...{ PATH: process.env.PATH, ADDRESS: world.mesh.grpcAddress },
        ...{ GENMESH_MESH_TOKEN: meshToken, ACCOUNT: account_id, KEY: key_id },
      },
    },
  );
  expect(stderr).toBe("");
  expect(stdout).toMatch(/available: '\d+'/);
  expect(stdout).toMatch(/event: response\.created\n/);
  expect(stdout).toMatch(/data: \[DONE\]/);
});

function methodsWith(service: DescService, access: RpcAccess): string[] {
  const isOpenSo = (method: DescMethod) => getOption(method, rpc_access) === access;
  return service.methods.filter(isOpenSo).map((method) => method.name);
}
