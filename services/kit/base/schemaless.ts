// Keeps Fastify from checking by schemas and from loading the code for that. The gateway and the gRPC port share it.

import type { FastifyServerOptions } from "fastify";

/**
 * For a Fastify that checks and shapes nothing by schema: services judge requests, and messages have encoders of their own. Given
 * when the server is made, it keeps Fastify from loading the compilers that it would use otherwise.
 */
export const schemaless: NonNullable<FastifyServerOptions["schemaController"]> = {
  compilersFactory: {
    // The declared type knows Ajv's validators alone.
    buildValidator: (() => () => () => true) as never,
    buildSerializer: () => () => (value) => JSON.stringify(value),
  },
};
