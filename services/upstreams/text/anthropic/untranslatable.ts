// The error for a part of a request that has no form in Messages. The text service refuses such a request before it is sent.

/** A part of a request that Messages have no form for. The caller gets its path and the message. */
export class Untranslatable extends Error {
  override readonly name = "Untranslatable";
  /** The path in the request in the Responses format. */
  readonly param: string;
  /** `unsupported`: Messages have no such thing. `invalid`: the value is wrong there. */
  readonly kind: "unsupported" | "invalid";

  constructor(param: string, message: string, kind: "unsupported" | "invalid" = "unsupported") {
    super(message);
    this.param = param;
    this.kind = kind;
  }
}

/** Throws {@link Untranslatable}. */
export function untranslatable(param: string, message: string): never {
  throw new Untranslatable(param, message);
}

/** The same for a value that is wrong. */
export function invalid(param: string, message: string): never {
  throw new Untranslatable(param, message, "invalid");
}
