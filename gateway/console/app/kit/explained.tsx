// Shows the meaning of a word beside it, for pointer, touch, keyboard and screen reader.

import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

/** Px between the tip and the edges of the window. */
const margin = 8;

/**
 * A word whose meaning is shown at its side: under the pointer, at a tap, and when the keyboard reaches it. Escape takes it away. A
 * screen reader says the word and then the meaning.
 */
export function Explained({
  meaning,
  children,
}: {
  /** In a sentence or two. Without one the word stands alone. */
  meaning: string | undefined;
  children: ComponentChildren;
}) {
  const id = useId();
  const word = useRef<HTMLButtonElement>(null);
  const tip = useRef<HTMLSpanElement>(null);
  if (!meaning) return <>{children}</>;
  const show = () => {
    if (!word.current || !tip.current) return;
    tip.current.showPopover();
    const { left, top, bottom } = word.current.getBoundingClientRect();
    const { offsetWidth, offsetHeight, style } = tip.current;
    const isBelow = bottom + offsetHeight + margin <= innerHeight;
    style.left = `${Math.max(margin, Math.min(left, innerWidth - offsetWidth - margin))}px`;
    style.top = `${isBelow ? bottom : Math.max(margin, top - offsetHeight)}px`;
  };
  const hide = () => tip.current?.hidePopover();
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the pointer may go from the word to its tip.
    <span
      class="explained"
      onPointerEnter={show}
      onPointerLeave={() => word.current !== document.activeElement && hide()}
    >
      <button
        type="button"
        ref={word}
        aria-describedby={id}
        onFocus={show}
        onClick={show}
        onBlur={hide}
        onKeyDown={(event) => event.key === "Escape" && hide()}
      >
        {children}
      </button>
      <span id={id} ref={tip} role="tooltip" popover="manual">
        {meaning}
      </span>
    </span>
  );
}
