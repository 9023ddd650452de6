export { checkJsonShape } from "#kit/json-shape.ts";
