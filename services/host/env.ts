// Reads single variables of the environment, and words the fault of one. `config.ts` and its parts say which variables there are.

/** Bad configuration: one line with the variable and the values that it accepts. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** The environment, or its replacement in tests. */
export type Env = Readonly<Record<string, string | undefined>>;

/** Reads variables. An empty one counts as not set. Every fault names its variable. */
export interface EnvReader {
  text(name: string): string | undefined;
  integer(name: string, fallback: number, min: number, max: number): number;
  bigint(name: string, fallback: bigint): bigint;
  choice<T extends string>(name: string, values: readonly T[], fallback: T): T;
  /** `1` or `true` is on. `0`, `false` or nothing is off. */
  flag(name: string): boolean;
  list(name: string): string[];
}

/** Throws a {@link ConfigError}: `NAME: accepted values (it is "…")`. Secrets are never repeated. */
export function badVariable(name: string, accepts: string, value?: string): never {
  throw new ConfigError(`${name} ${accepts}${value === undefined ? "" : ` (it is "${value}")`}`);
}

/** Makes an {@link EnvReader}. */
export function envReader(env: Env): EnvReader {
  const text = (name: string) => env[name]?.trim() || undefined;
  return {
    text,
    integer(name, fallback, min, max) {
      const value = text(name);
      if (value === undefined) return fallback;
      const number = Number(value);
      if (!/^\d+$/.test(value) || number < min || number > max) {
        badVariable(name, `must be a whole number from ${min} to ${max}`, value);
      }
      return number;
    },
    bigint(name, fallback) {
      const value = text(name);
      if (value === undefined) return fallback;
      if (!/^\d{1,15}$/.test(value))
        badVariable(name, "must be a whole number of up to 15 digits", value);
      return BigInt(value);
    },
    choice(name, values, fallback) {
      const value = text(name);
      if (value === undefined) return fallback;
      return (
        values.find((one) => one === value) ??
        badVariable(name, `must be one of: ${values.join(", ")}`, value)
      );
    },
    flag(name) {
      const value = text(name)?.toLowerCase();
      if (value === undefined || value === "0" || value === "false") return false;
      return value === "1" || value === "true" || badVariable(name, "must be 1 or 0", value);
    },
    list: (name) =>
      (text(name) ?? "")
        .split(",")
        .map((part) => part.trim())
        .filter((part) => part !== ""),
  };
}
