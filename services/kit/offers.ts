/** What a refusal says a model offers: "The model's voices are: …", or that it takes none. */
export function offers(one: string, many: string, offered: readonly string[]): string {
  return offered.length === 0
    ? `The model takes no ${one}.`
    : `The model's ${many} are: ${offered.join(", ")}.`;
}
