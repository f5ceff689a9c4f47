import type { Tokens } from '../transcripts/detection.js';

/*
 * The one table of prices. Dollars per million tokens, in tenths of a dollar, so that every price
 * and every sum is a whole number.
 */

interface Rates {
  input: number;
  output: number;
}

const top: Rates = { input: 50, output: 250 };
const middle: Rates = { input: 30, output: 150 };
const low: Rates = { input: 8, output: 40 };

/** What the name of a model says about its tier; one that says nothing is of the top tier. */
const tiers: readonly (readonly [name: RegExp, rates: Rates])[] = [
  [/opus/i, top],
  [/sonnet/i, middle],
  [/haiku/i, low],
];

/** The only family with prices; the others report tokens alone. */
const pricedBackends = new Set(['claude']);

// Shares of the input price. A cache entry that lives for an hour costs more to write.
const cacheReadShare = 0.1;
const cacheWriteShare = 1.25;
const cacheWriteLongShare = 2;

/** The rates of a model, or undefined when its backend has no prices. */
export function ratesOf(backend: string, model: string): Rates | undefined {
  if (!pricedBackends.has(backend)) return undefined;
  return tiers.find(([name]) => name.test(model))?.[1] ?? top;
}

/** The price of input and output, in ten-millionths of a dollar: a whole number. */
export function priceOf(
  { input, output }: Rates,
  tokens: Pick<Tokens, 'input' | 'output'>,
): number {
  return tokens.input * input + tokens.output * output;
}

/** The price of what was read from and written to the cache, likewise. */
export function cachePriceOf({ input }: Rates, tokens: Tokens): number {
  const short = tokens.cacheWrite - tokens.cacheWriteLong;
  return Math.round(
    input *
      (tokens.cacheRead * cacheReadShare +
        short * cacheWriteShare +
        tokens.cacheWriteLong * cacheWriteLongShare),
  );
}

export function dollarsOf(price: number): number {
  return price / 1e7;
}
