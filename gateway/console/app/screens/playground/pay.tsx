import type { ComponentChildren } from "preact";
import { Money } from "../../kit/values.tsx";
import type { Wallet } from "../../types.ts";

/** The last row of a form that costs dollars: the price, the balance, and the button. */
export function Pay({
  wallet,
  isBusy,
  submit,
  busy,
  children,
}: {
  wallet: Wallet | undefined;
  isBusy: boolean;
  /** The text of the button, and the one while it is sent. */
  submit: string;
  busy: string;
  /** The price, in words. */
  children: ComponentChildren;
}) {
  return (
    <div class="pay">
      <p>
        <strong>{children}</strong>
        {wallet && (
          <span class="sub">
            of <Money micros={wallet.spendableUsdMicros} /> available
          </span>
        )}
      </p>
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? busy : submit}
      </button>
    </div>
  );
}
