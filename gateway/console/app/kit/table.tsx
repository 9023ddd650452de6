// The tables of all lists, and the buttons of their pages.

import type { ComponentChildren } from "preact";
import type { Loaded } from "../hooks.ts";
import { ErrorText } from "./states.tsx";

export interface Column<T> {
  head: string;
  cell(row: T): ComponentChildren;
  /** A column of figures, aligned at the right. */
  numeric?: boolean;
  /** A column of buttons, without a visible heading. */
  isActions?: boolean;
}

/** Columns that a narrow screen has room for. Wider tables become cards sooner. */
const narrowRoom = 5;
/** Empty rows that take the room of a page that loads for the first time. */
const bones = 8;

/**
 * A list page. The first column names the row. Below 640 px each row becomes a card, with that name as its heading. `empty` is shown
 * where the list has no rows.
 */
export function Table<T>({
  caption,
  columns,
  loaded,
  rowsOf,
  keyOf,
  empty,
}: {
  /** For screen readers only. */
  caption: string;
  columns: readonly Column<T>[];
  loaded: Pick<Loaded<unknown>, "error" | "isLoading" | "reload">;
  /** Undefined until the first answer. */
  rowsOf: readonly T[] | undefined;
  keyOf(row: T): string;
  empty: ComponentChildren;
}) {
  const { error, isLoading, reload } = loaded;
  if (error) return <ErrorText error={error} retry={reload} />;
  if (rowsOf?.length === 0) return <>{empty}</>;
  // Buttons take the room of two columns.
  const room = columns.reduce((sum, column) => sum + (column.isActions ? 2 : 1), 0);
  const isWide = room > narrowRoom;
  const classOf = (column: Column<T>) =>
    [column.numeric && "numeric", column.isActions && "row-actions"].filter(Boolean).join(" ") ||
    undefined;
  return (
    <div class={isWide ? "table-wrap is-wide" : "table-wrap"} aria-busy={isLoading}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th scope="col" key={column.head} class={classOf(column)}>
                {column.isActions ? <span class="unseen">{column.head}</span> : column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rowsOf
            ? rowsOf.map((row) => (
                <tr key={keyOf(row)}>
                  {columns.map((column, place) => {
                    const Cell = place === 0 ? "th" : "td";
                    return (
                      <Cell
                        key={column.head}
                        {...(place === 0 ? { scope: "row" } : { "data-label": column.head })}
                        class={classOf(column)}
                      >
                        <div>{column.cell(row)}</div>
                      </Cell>
                    );
                  })}
                </tr>
              ))
            : Array.from({ length: bones }, (_, row) => (
                <tr key={row}>
                  <td colSpan={columns.length}>
                    <span class="bone" />
                  </td>
                </tr>
              ))}
        </tbody>
      </table>
    </div>
  );
}

/** The buttons of a list's pages. Both keep their places, so that the reader can press one again and again. */
export function Pager({
  pages,
  nextCursor,
}: {
  pages: { next(cursor: string): void; previous: (() => void) | undefined };
  nextCursor: string | null | undefined;
}) {
  if (!nextCursor && !pages.previous) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={!pages.previous} onClick={() => pages.previous?.()}>
        Previous
      </button>
      <button
        type="button"
        disabled={!nextCursor}
        onClick={() => nextCursor && pages.next(nextCursor)}
      >
        Next
      </button>
    </nav>
  );
}
