/** What is wrong with a catalog file, and where. */
export interface Fault {
  /** `models[3].videoOptions[0].credits`; empty where it concerns the file as a whole. */
  path: string;
  /** One line, without any value from the file; names the line where that is known. */
  message: string;
}

/** A place in the file, from its root. */
export type FaultPath = readonly (string | number)[];

/** A fault whose path is not text yet. */
export interface FoundFault {
  path: FaultPath;
  message: string;
}

/** Longest name shown in a path, characters: a stray key may be a whole document. */
const maxShownCharacters = 60;

/** `["models", 3, "id"]` as `models[3].id`; names that are not plain words are quoted. */
export function pathText(path: FaultPath): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    if (!/^[A-Za-z_][\w-]*$/.test(part) || part.length > maxShownCharacters) {
      return `${text}[${JSON.stringify(part.slice(0, maxShownCharacters))}]`;
    }
    return text === "" ? part : `${text}.${part}`;
  }, "");
}

/** A fault in one line: `path: message`. */
export function faultText(fault: Fault): string {
  return fault.path === "" ? fault.message : `${fault.path}: ${fault.message}`;
}
