import { describe } from "vitest";
import { speechFormatsContract } from "./speech.formats.suite.ts";

describe("formats of speech on embedded stores", () => speechFormatsContract());
