// Finds each process of a mesh behind the services' addresses and asks it about itself, for `genmesh status`.

import { lookup } from "node:dns/promises";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import type { AskedProcess } from "#common/documents/status-document.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import { refusingTransport } from "#kit/rpc/refusing-transport.ts";
import { ProcessService } from "#proto/genmesh/common/v1/process_service_pb.ts";
import type { OperatorConfig } from "../config.ts";
import { type PeerName, peerNames } from "../roles.ts";
import { type Address, operatorTransport } from "./client.ts";
import { explain } from "./explain.ts";

/** Milliseconds for the answer of one process. It asks nothing of its stores. */
export const askTimeoutMs = 5_000;

/**
 * Asks every process behind the addresses of the services once, without repeats. A name may lead to several. A process behind two
 * addresses is answered once. Rejects where the admin token is refused.
 */
export async function askProcesses(
  config: OperatorConfig,
  server: string | undefined,
): Promise<AskedProcess[]> {
  const names = new Map<string, PeerName>();
  for (const service of peerNames) {
    const urls = server === undefined ? (config.peers[service] ?? [undefined]) : [undefined];
    for (const url of urls) if (!names.has(`${url}`)) names.set(`${url}`, service);
  }
  const asking = [...names].map(async ([url, service]) => {
    if (url !== "undefined") return askName(config, url, service);
    const { address, transport } = operatorTransport(config, { server, timeoutMs: askTimeoutMs });
    return [await ask(transport, address, "genmesh")];
  });
  const asked = (await Promise.all(asking)).flat();
  const seen = new Set<string>();
  return asked.filter((one) => {
    const id = "answer" in one ? one.answer.processId : "";
    if (seen.has(id)) return false;
    if (id !== "") seen.add(id);
    return true;
  });
}

/** The processes at a name's addresses of the first family at which one answers. */
async function askName(config: OperatorConfig, url: string, service: PeerName) {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  let found: Address[];
  try {
    found = await lookup(host, { all: true, order: "ipv4first" });
  } catch (error) {
    return [{ address: url, service, fault: explain(error), isEarlier: false }];
  }
  const asked = [];
  for (const family of [4, 6]) {
    const addresses = found.filter((one) => one.family === family);
    const answers = await Promise.all(
      addresses.map((at) => {
        const { transport } = operatorTransport(config, { url, at, timeoutMs: askTimeoutMs });
        return ask(transport, at.address === host ? url : `${url} (${at.address})`, service);
      }),
    );
    if (answers.some((one) => "answer" in one)) return answers;
    asked.push(...answers);
  }
  return asked;
}

async function ask(inner: Transport, address: string, service: string): Promise<AskedProcess> {
  try {
    const client = createClient(ProcessService, refusingTransport(inner));
    return { address, service, answer: await client.getProcess({}) };
  } catch (error) {
    if (isRefusal(error, ErrorReason.CALLER_UNAUTHENTICATED, ErrorReason.CALLER_FORBIDDEN)) {
      throw error;
    }
    const cause = error instanceof Error ? error.cause : undefined;
    const isEarlier = cause instanceof ConnectError && cause.code === Code.Unimplemented;
    if (isEarlier) return { address, service, fault: "it does not say more", isEarlier };
    const said = cause instanceof ConnectError ? cause.rawMessage : explain(error);
    return { address, service, fault: `does not answer (${said})`, isEarlier };
  }
}
