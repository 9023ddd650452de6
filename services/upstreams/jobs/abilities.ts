// Reads from an upstream's declaration what the upstream can do. Other protocols have fixed rows in `../protocols.ts`.

import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Declaration } from "./declaration.ts";
import { pathOf } from "./paths.ts";

/** An upstream's declaration, from its catalog entry. */
export function declarationOf({ jobs }: Pick<Upstream, "jobs">): Declaration {
  return JSON.parse(jobs);
}

/** Do we name the task, so that a look needs nothing of the answer to the request that begins it? */
export function isNamedByUs({ create, poll }: Pick<Declaration, "create" | "poll">): boolean {
  const isNamed = poll !== undefined && pathOf(poll).includes("${job}");
  return isNamed && Object.keys(create.take ?? {}).length === 0;
}

/** The abilities that depend on the upstream. */
export function declaredAbilities(upstream: Pick<Upstream, "jobs">) {
  const declaration = declarationOf(upstream);
  const { create, cancel, poll } = declaration;
  const isRepeatable = create.key !== undefined || isNamedByUs(declaration);
  return {
    submit: isRepeatable ? ("repeatable" as const) : ("once" as const),
    resume: poll !== undefined,
    cancel: cancel !== undefined,
    progress: poll?.progress === undefined ? ("none" as const) : ("percent" as const),
  };
}
