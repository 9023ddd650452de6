// The search field of lists.

import { useEffect, useState } from "preact/hooks";
import { TextField } from "./form.tsx";

/** Searches when the reader presses Enter or the button. */
export function SearchField({
  label,
  placeholder,
  value,
  onSearch,
}: {
  label: string;
  placeholder?: string;
  value: string;
  onSearch(text: string): void;
}) {
  const [text, setText] = useState(value);
  // A link may change the text too.
  useEffect(() => setText(value), [value]);
  return (
    <search>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          onSearch(text.trim());
        }}
      >
        <TextField
          label={label}
          type="search"
          value={text}
          onValue={setText}
          {...(placeholder !== undefined && { placeholder })}
        />
        <button type="submit">Find</button>
      </form>
    </search>
  );
}
