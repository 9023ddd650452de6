// Makes the clients by which a service, a gateway or the command calls the services, wherever these are.

import type { Client, Transport } from "@connectrpc/connect";
import { createRpcClient } from "#kit/rpc/client.ts";
import { refusingTransport } from "#kit/rpc/refusing-transport.ts";
import { AuthService } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { BillingService } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { CatalogService } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { MediaService } from "#proto/genmesh/media/v1/media_service_pb.ts";
import { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";

/** Clients of the other services. In one process they call them directly. */
export interface Peers {
  auth: Client<typeof AuthService>;
  billing: Client<typeof BillingService>;
  catalog: Client<typeof CatalogService>;
  text: Client<typeof TextService>;
  media: Client<typeof MediaService>;
}

/** Clients, with one transport for each service. Their calls reject with RefusalError. */
export function createPeers(transportOf: (peer: keyof Peers) => Transport): Peers {
  return {
    auth: createRpcClient(AuthService, refusingTransport(transportOf("auth"))),
    billing: createRpcClient(BillingService, refusingTransport(transportOf("billing"))),
    catalog: createRpcClient(CatalogService, refusingTransport(transportOf("catalog"))),
    text: createRpcClient(TextService, refusingTransport(transportOf("text"))),
    media: createRpcClient(MediaService, refusingTransport(transportOf("media"))),
  };
}
