import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp } from '@millrace/kit/units';
import {
  exactDollarsOf,
  exactPriceOf,
  exactRatesOf,
  pricedTokens,
  reportedTokens,
} from './pricing.js';
import type { Sums } from './rollup.js';
import { slotMs } from './tally.js';

type UsageBlock = DaemonSchema<'UsageBlock'>;

const hourMs = 3_600_000;
const blockMs = 5 * hourMs;

/** The first and the last message between two times, as far as messages are kept one by one. */
export type SpanOf = (from: number, to: number) => { first: number; last: number } | undefined;

export interface BlockOptions {
  now: number;
  backend: string;
  spanOf: SpanOf;
}

/**
 * The five-hour blocks of a backend, oldest first. A block begins with the full hour (UTC) of the
 * first message after the block before it. Quarters of an hour are fine enough for that.
 */
export function blocksOf(sums: Sums, { now, backend, spanOf }: BlockOptions): UsageBlock[] {
  const cells = [...sums.cells()]
    .filter(({ place }) => sums.place(place).backend === backend)
    .sort((a, b) => a.slot - b.slot);
  const blocks: Block[] = [];
  for (const { slot, place, tokens } of cells) {
    const at = slot * slotMs;
    let block = blocks.at(-1);
    if (!block || at >= block.start + blockMs) {
      block = new Block(Math.floor(at / hourMs) * hourMs);
      blocks.push(block);
    }
    block.add(at, sums.place(place).model, {
      reported: reportedTokens(backend, tokens),
      priced: pricedTokens(backend, tokens),
    });
  }
  return blocks.map((block) => block.shown(now, spanOf));
}

type Tokens = Parameters<typeof exactPriceOf>[1];

class Block {
  readonly #models = new Set<string>();
  readonly #tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  #price: number | undefined;
  #firstSlot = Infinity;
  #lastSlot = 0;

  constructor(readonly start: number) {}

  add(at: number, model: string, { reported, priced }: { reported: Tokens; priced: Tokens }): void {
    this.#firstSlot = Math.min(this.#firstSlot, at);
    this.#lastSlot = at + slotMs;
    this.#models.add(model);
    this.#tokens.input += reported.input;
    this.#tokens.output += reported.output;
    this.#tokens.cacheRead += reported.cacheRead;
    this.#tokens.cacheWrite += reported.cacheWrite;
    const rates = exactRatesOf(model);
    if (rates) this.#price = (this.#price ?? 0) + exactPriceOf(rates, priced);
  }

  shown(now: number, spanOf: SpanOf): UsageBlock {
    const end = this.start + blockMs;
    const { input, output, cacheRead, cacheWrite } = this.#tokens;
    const isActive = now >= this.start && now < end;
    const { first, last } = spanOf(this.start, end - 1) ?? {
      first: this.#firstSlot,
      last: Math.min(this.#lastSlot, end, Math.max(now, this.#firstSlot)),
    };
    const tokens = input + output + cacheRead + cacheWrite;
    const usd = this.#price === undefined ? null : exactDollarsOf(this.#price);
    const minutes = (last - first) / 60_000;
    const burn =
      minutes > 0
        ? {
            tokens_per_minute: tokens / minutes,
            usd_per_hour: usd === null ? null : (usd / minutes) * 60,
          }
        : null;
    const leftMinutes = Math.max(0, end - now) / 60_000;
    const projection =
      isActive && burn
        ? {
            tokens: Math.round(tokens + burn.tokens_per_minute * leftMinutes),
            exact_usd:
              usd === null || burn.usd_per_hour === null
                ? null
                : usd + (burn.usd_per_hour * leftMinutes) / 60,
          }
        : null;
    return {
      start: formatTimestamp(this.start),
      end: formatTimestamp(end),
      first_at: formatTimestamp(first),
      last_at: formatTimestamp(last),
      is_active: isActive,
      models: [...this.#models].sort(),
      input_tokens: input,
      output_tokens: output,
      cache_read_tokens: cacheRead,
      cache_write_tokens: cacheWrite,
      exact_usd: usd,
      burn,
      projection,
    };
  }
}
