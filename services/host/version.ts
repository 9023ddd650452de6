// Reads the version of genmesh from its package.

import manifest from "../../package.json" with { type: "json" };

/** The version of the package. The image and the charts have the same one. */
export const { version } = manifest;
