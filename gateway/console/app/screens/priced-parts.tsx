// Shows prices of models, and the parts of a request that had prices of their own.

import type { ComponentChildren } from "preact";
import { count } from "../format.ts";
import { Credits, Fact, Money } from "../kit/values.tsx";
import type { Model, PricedParts, Pricing, TokenPrices, VideoOption } from "../types.ts";

/** Prices of tokens, with the names of their facts. */
const tokenPrices: readonly [name: string, field: keyof TokenPrices][] = [
  ["Input", "inputUsdMicrosPerMillionTokens"],
  ["Cached input", "cachedInputUsdMicrosPerMillionTokens"],
  ["Cache write", "cacheWriteUsdMicrosPerMillionTokens"],
  ["Long cache write", "cacheWriteLongUsdMicrosPerMillionTokens"],
  ["Audio in", "audioInputUsdMicrosPerMillionTokens"],
  ["Cached audio in", "cachedAudioInputUsdMicrosPerMillionTokens"],
  ["Images in", "imageInputUsdMicrosPerMillionTokens"],
  ["Output", "outputUsdMicrosPerMillionTokens"],
  ["Audio out", "audioOutputUsdMicrosPerMillionTokens"],
  ["Images out", "imageOutputUsdMicrosPerMillionTokens"],
];

/** The prices of a text model: those of tokens, those of a long input, those of tiers and of calls of tools. */
export function PriceFacts({ pricing }: { pricing: Pricing }) {
  const { longInput = [], servedTiers = {}, toolCalls = {} } = pricing;
  return (
    <>
      <RowFacts row={pricing} above="" />
      {longInput.map((row) => (
        <RowFacts
          key={row.aboveInputTokens}
          row={row}
          above={`, above ${count(row.aboveInputTokens)} of input`}
        />
      ))}
      {Object.entries(servedTiers).map(([tier, percent]) => (
        <Fact key={tier} name={`Tier ${tier}`}>
          {count(percent)} %
        </Fact>
      ))}
      {Object.entries(toolCalls).map(([family, micros]) => (
        <Fact key={family} name={`A call of ${family}`}>
          <Money micros={micros} digits="price" />
        </Fact>
      ))}
    </>
  );
}

function RowFacts({ row, above }: { row: TokenPrices; above: string }) {
  return (
    <>
      {tokenPrices.map(([name, field]) => {
        const micros = row[field];
        return micros === undefined ? null : (
          <Fact key={name} name={`${name}${above}`}>
            <Money micros={micros} digits="price" /> <span class="muted">per million</span>
          </Fact>
        );
      })}
    </>
  );
}

/** All prices of a model, except for those of videos. */
export function ModelPriceFacts({ model }: { model: Model }) {
  const { pricing, imageOptions = [] } = model;
  const price = priceOf(model);
  return (
    <>
      {pricing && <PriceFacts pricing={pricing} />}
      {price && <Fact name="Price">{price}</Fact>}
      {imageOptions.map(({ quality, size, credits }) => {
        const name = [quality && `Quality ${quality}`, size].filter(Boolean).join(", ");
        return (
          <Fact key={name} name={name}>
            <Credits value={credits} /> credits
          </Fact>
        );
      })}
    </>
  );
}

function priceOf(model: Model): ComponentChildren | undefined {
  if (model.creditPrice !== undefined) {
    const each = model.kind === "image" ? "an image" : "a job";
    return (
      <>
        <Credits value={model.creditPrice} /> credits {each}
      </>
    );
  }
  const { usdMicrosPerMillionCharacters: ofText, usdMicrosPerMinute: ofSound } =
    model.pricing ?? {};
  const [micros, per] = ofText !== undefined ? [ofText, "million characters"] : [ofSound, "minute"];
  return (
    micros !== undefined && (
      <>
        <Money micros={micros} digits="price" /> per {per}
      </>
    )
  );
}

/** The rows of a video model's prices. */
export function VideoPrices({ options }: { options: readonly VideoOption[] }) {
  return (
    <details>
      <summary>
        {options.length} {options.length === 1 ? "option" : "options"}, from{" "}
        <Credits value={Math.min(...options.map(({ credits }) => credits))} /> credits
      </summary>
      <ul class="prices">
        {options.map((row) => (
          <li key={`${row.durationSeconds}-${row.resolution}`}>
            <span>
              {row.durationSeconds} s · {row.resolution}{" "}
              <span class="muted">{row.modes.join(", ")}</span>
            </span>
            <span>
              <Credits value={row.credits} /> credits
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The parts of a request that may have prices of their own. Nothing where it has none. */
export function PartFacts({ record }: { record: PricedParts }) {
  const counts: readonly [name: string, tokens: number][] = [
    ["Written to a cache", record.inputCacheWriteTokens],
    ["Of these, for long", record.inputCacheWriteLongTokens],
    ["Audio in", record.inputAudioTokens],
    ["Images in", record.inputImageTokens],
    ["Audio out", record.outputAudioTokens],
    ["Images out", record.outputImageTokens],
  ];
  const calls = Object.entries(record.toolCalls).map(([family, n]) => `${count(n)} ${family}`);
  return (
    <>
      {counts.map(([name, tokens]) =>
        tokens === 0 ? null : (
          <Fact key={name} name={name}>
            {count(tokens)} tokens
          </Fact>
        ),
      )}
      {calls.length > 0 && <Fact name="Calls of tools">{calls.join(", ")}</Fact>}
      {record.priceAboveInputTokens > 0 && (
        <Fact name="Price">of more than {count(record.priceAboveInputTokens)} of input</Fact>
      )}
      {record.servedTier && <Fact name="Tier">{record.servedTier}</Fact>}
    </>
  );
}
