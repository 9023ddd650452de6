// Checks messages of calls over the wire against the rules in the proto files. The gRPC port of every role takes it in.

import { type Path, pathToString } from "@bufbuild/protobuf/reflect";
import type { Interceptor } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isOpenService } from "./gate.ts";

/**
 * Refuses messages that break a rule (`buf.validate`) of the proto files, with INVALID_ARGUMENT and the path of the field. Its library
 * is loaded at the first call. It takes a tenth of a second and some MB, and few processes are called by other programs.
 */
export function rulesInterceptor(): Interceptor {
  let loaded: Promise<Interceptor> | undefined;
  return (next) => async (req) => {
    if (isOpenService(req.service.typeName)) return next(req);
    loaded ??= load();
    return (await loaded)(next)(req);
  };
}

async function load(): Promise<Interceptor> {
  const [{ createValidateInterceptor }, { createValidator }] = await Promise.all([
    import("@connectrpc/validate"),
    import("@bufbuild/protovalidate"),
  ]);
  const rules = createValidator({ failFast: true });
  return createValidateInterceptor({
    validator: {
      validate(desc, message) {
        const result = rules.validate(desc, message);
        if (result.kind === "error") throw result.error;
        if (result.kind === "invalid") refuseAt(result.violations[0]?.field ?? []);
        return result;
      },
    },
  });
}

/** An idempotency key has a reason of its own in the public API. */
function refuseAt(path: Path): never {
  const field = pathToString(path);
  if (field.endsWith("idempotency_key")) {
    refuse(ErrorReason.INVALID_IDEMPOTENCY_KEY, { param: "Idempotency-Key" });
  }
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
