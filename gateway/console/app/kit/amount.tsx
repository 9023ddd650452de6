// Shows a sum of either wallet, in dollars or credits.

import type { Sum } from "../format.ts";
import type { Unit } from "../types.ts";
import { Credits, Money } from "./values.tsx";

/** A sum of either wallet. */
export function Amount({ unit, value, exact }: { unit: Unit; value: Sum; exact?: boolean }) {
  if (unit === "usd_micros") return <Money micros={value} digits={exact ? "all" : "cents"} />;
  return (
    <span class="num">
      <Credits value={value} /> credits
    </span>
  );
}
