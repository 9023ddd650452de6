// Makes the navigation of the documentation's site. `build.ts` puts it beside every page.

import { addressOf, read, targetOf } from "./pages.ts";

/** A line of the navigation. With `items` it can be opened. */
export interface Entry {
  text: string;
  /** The address in the site. */
  link?: string;
  items?: Entry[];
  collapsible?: boolean;
  collapsed?: boolean;
}

const start = "docs/README.md";

/** The navigation beside every page: the start page, the links of its introduction, and each of its readers with their pages. */
export function navigation(): Entry[] {
  const [introduction = "", ...readers] = read(start).split(/^## /m);
  return [
    { text: "All pages", link: "/" },
    ...entriesOf(start, introduction.matchAll(/\[([^\]]*)\]\(([^)\s]+)\)/g)),
    ...readers.map((reader) => ({
      text: reader.slice(0, reader.indexOf("\n")),
      items: listedIn(start, reader),
      collapsible: true,
    })),
  ];
}

/** The first links of the items of lists, with their texts. */
function listedIn(page: string, text: string): Entry[] {
  return entriesOf(page, text.matchAll(/^(?:-|\d+\.) \[([^\]]*)\]\(([^)\s]+)\)/gm));
}

/** An entry for each link of a page. Below the page of a folder are those that it lists. */
function entriesOf(page: string, links: Iterable<string[]>): Entry[] {
  return Array.from(links, ([, text = "", to = ""]) => {
    const { path, hash } = targetOf(page, to);
    const own = {
      text: text.replace(/^\w/, (letter) => letter.toUpperCase()),
      link: `${addressOf(path)}${hash}`,
    };
    const items = path.endsWith("/README.md") ? listedIn(path, read(path)) : [];
    return items.length === 0 ? own : { ...own, items, collapsible: true, collapsed: true };
  });
}
