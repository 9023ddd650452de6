import { fileURLToPath } from "node:url";

/** The folder of this repository, for tests that run the code of another checkout, too. */
export const thisCheckout = fileURLToPath(new URL("../..", import.meta.url));
