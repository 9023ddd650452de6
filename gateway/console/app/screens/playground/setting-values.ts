// Turns the typed values of a playground's form into those of a request.

/** The values that are set. Values that the API wants as numbers become numbers. "" is absent. */
export function present(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined && value !== ""),
  );
}

export function numberOf(text: string | undefined): number | undefined {
  const value = text === undefined || text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** A list of ids in one setting. */
export function idsOf(text: string | undefined): string[] {
  return text ? text.split(",") : [];
}
