import { count } from "../format.ts";
import { Fact, Money } from "../kit/values.tsx";
import type { PricedParts, Pricing, TokenPrices } from "../types.ts";

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
            <Money micros={micros} digits="price" />
          </Fact>
        );
      })}
    </>
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
