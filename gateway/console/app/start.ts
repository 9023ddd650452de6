// The first script of the page. Its name has no hash, so that every build has it.
import "./theme.ts";
import "./load-again.ts";
