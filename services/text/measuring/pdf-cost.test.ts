import { expect, test } from "vitest";
import { maxPdfPages } from "../limits.ts";
import { heavyPdfs } from "./heavy-pdfs.fixture.ts";
import { measurePdf } from "./pdf.ts";

// Nothing here is timed. Read without a bound these take from ten seconds to hours each, so a test of them would not end.
test.for(heavyPdfs)(
  "takes a number of steps that its size alone tells: %s",
  ([, bytes, answer]) => {
    expect(measurePdf(bytes(), maxPdfPages)).toEqual(answer);
  },
);
