import { describe } from "vitest";
import { speechMoneyContract } from "./speech.money.suite.ts";

describe("the money of speech on embedded stores", () => speechMoneyContract());
