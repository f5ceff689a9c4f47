import type { DaemonSchema } from '@millrace/contract/daemon';
import {
  exactDollarsOf,
  exactPriceOf,
  exactRatesOf,
  cachePriceOf,
  dollarsOf,
  priceOf,
  pricedTokens,
  ratesOf,
  reportedTokens,
} from './pricing.js';
import { dayLabel } from '../core/local-time.js';
import type { KnownPlace } from './rows.js';
import { slotMs, type Cell } from './tally.js';

type Rollup = DaemonSchema<'SpendRollup'>;
type SpendRow = DaemonSchema<'SpendRow'>;

/** The sums that a rollup is made of. */
export interface Sums {
  cells(): Iterable<Cell>;
  place(number: number): KnownPlace;
  used(from: number, to: number): ReadonlyMap<number, { input: number; output: number }>;
}

export interface RollupOptions {
  now: number;
  basis: Rollup['basis'];
  /** What a session that this daemon knows worked on. */
  workOf?: ((place: KnownPlace) => Work | undefined) | undefined;
}

/** Tokens and list price since the first transcript. */
export interface SpentByModel {
  backend: string;
  model: string;
  tokens: Readonly<Record<'input' | 'output' | 'cache_read' | 'cache_write', number>>;
  /** Null when the model has no known price. */
  exactUsd: number | null;
}

export interface Work {
  branch: string | null;
  repo: string | null;
  /** The task that it did, of the queue or of a plan. */
  task: string | null;
}

const weekMs = 7 * 86_400_000;

/** All spend, by agent, directory, day, model and more. */
export function rollup(sums: Sums, options: RollupOptions): Rollup {
  const { now, basis, workOf } = options;
  const today = dayLabel(now);
  const monday = mondayOf(today);
  const days = new Map<number, string>();
  const tables = { agent: new Table(), repo: new Table(), day: new Table() };
  const [byModel, byBackend] = [new Table(), new Table()];
  const [byHour, byBranch, byTask] = [new Table(), new Table(), new Table()];
  const total = new Sum();
  const [ofToday, ofWeek] = [new Sum(), new Sum()];
  const ofTrailingWeek = new Sum();
  const unpriced = new Set<string>();
  let [cachePrice, cacheRead, cacheWrite] = [0, 0, 0];
  for (const { slot, place: number, tokens } of sums.cells()) {
    const place = sums.place(number);
    const rates = ratesOf(place.backend, place.model);
    const exact = exactRatesOf(place.model);
    const exactPrice = exact && exactPriceOf(exact, pricedTokens(place.backend, tokens));
    const reported = reportedTokens(place.backend, tokens);
    const spent = { ...reported, price: rates && priceOf(rates, tokens), exactPrice };
    if (!exact && tokens.input + tokens.output > 0) unpriced.add(place.model);
    // A slot in which the week starts counts completely.
    const isOfTrailingWeek = (slot + 1) * slotMs > now - weekMs;
    if (isOfTrailingWeek) ofTrailingWeek.add(spent);
    let day = days.get(slot);
    if (day === undefined) days.set(slot, (day = dayLabel(slot * slotMs)));
    total.add(spent);
    if (day === today) ofToday.add(spent);
    if (day >= monday && day <= today) ofWeek.add(spent);
    const work = workOf?.(place);
    tables.agent.add(place.agent, spent);
    // A worktree may be gone before its transcript is read.
    tables.repo.add(work?.repo ?? place.repo, spent);
    tables.day.add(day, spent);
    byModel.add(place.model, spent);
    byBackend.add(place.backend, spent);
    if (isOfTrailingWeek) byHour.add(`${day}T${hourOf(slot * slotMs)}:00`, spent);
    byBranch.add(work?.branch ?? 'none', spent);
    byTask.add(work?.task ?? 'none', spent);
    cacheRead += reported.cacheRead;
    cacheWrite += reported.cacheWrite;
    if (rates) cachePrice += cachePriceOf(rates, tokens);
  }
  return {
    total_usd: dollarsOf(total.price),
    daily_usd: dollarsOf(ofToday.price),
    weekly_usd: trailingWeek(sums, now),
    week_usd: dollarsOf(ofWeek.price),
    cache_usd: dollarsOf(cachePrice),
    exact_usd: total.exactUsd,
    daily_exact_usd: ofToday.exactUsd,
    weekly_exact_usd: ofTrailingWeek.exactUsd,
    week_exact_usd: ofWeek.exactUsd,
    unpriced_models: [...unpriced].sort(),
    input_tokens: total.input,
    output_tokens: total.output,
    cache_read_tokens: cacheRead,
    cache_write_tokens: cacheWrite,
    by_agent: tables.agent.dearestFirst(),
    by_repo: tables.repo.dearestFirst(),
    by_day: tables.day.inOrder(),
    by_model: byModel.dearestFirst(),
    by_backend: byBackend.dearestFirst(),
    by_hour: byHour.inOrder(),
    by_branch: byBranch.dearestFirst(),
    by_task: byTask.dearestFirst(),
    basis,
  };
}

/** Of the seven days up to now, to the millisecond. */
function trailingWeek(sums: Sums, now: number): number {
  let price = 0;
  for (const [number, used] of sums.used(now - weekMs + 1, now)) {
    const { backend, model } = sums.place(number);
    const rates = ratesOf(backend, model);
    if (rates) price += priceOf(rates, used);
  }
  return dollarsOf(price);
}

interface Spent {
  input: number;
  output: number;
  /** Undefined where there are no prices. */
  price: number | undefined;
  /** Undefined where the model has no exact price. */
  exactPrice: number | undefined;
}

class Sum {
  input = 0;
  output = 0;
  price = 0;
  isPriced = false;
  #exactPrice: number | undefined;

  /** Null when nothing in the sum has an exact price. */
  get exactUsd(): number | null {
    return this.#exactPrice === undefined ? null : exactDollarsOf(this.#exactPrice);
  }

  add({ input, output, price, exactPrice }: Spent): void {
    this.input += input;
    this.output += output;
    if (exactPrice !== undefined) this.#exactPrice = (this.#exactPrice ?? 0) + exactPrice;
    if (price === undefined) return;
    this.price += price;
    this.isPriced = true;
  }
}

class Table {
  readonly #rows = new Map<string, Sum>();

  add(key: string, spent: Spent): void {
    let sum = this.#rows.get(key);
    if (!sum) this.#rows.set(key, (sum = new Sum()));
    sum.add(spent);
  }

  inOrder(): SpendRow[] {
    return this.#shown().sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Those without a price come last, the most tokens first. */
  dearestFirst(): SpendRow[] {
    const cost = ({ exact_usd: usd }: SpendRow) => usd ?? -1;
    const tokens = (each: SpendRow) => each.input_tokens + each.output_tokens;
    return this.inOrder().sort((a, b) => cost(b) - cost(a) || tokens(b) - tokens(a));
  }

  #shown(): SpendRow[] {
    return [...this.#rows].map(([key, { input, output, price, isPriced, exactUsd }]) => ({
      key,
      input_tokens: input,
      output_tokens: output,
      usd: isPriced ? dollarsOf(price) : null,
      exact_usd: exactUsd,
    }));
  }
}

function hourOf(time: number): string {
  return String(new Date(time).getHours()).padStart(2, '0');
}

/** The Monday on or before a date. */
export function mondayOf(day: string): string {
  // As if the date were of UTC, where every day has its 24 hours.
  const noon = Date.parse(`${day}T12:00:00Z`);
  const sinceMonday = (new Date(noon).getUTCDay() + 6) % 7;
  return new Date(noon - sinceMonday * 86_400_000).toISOString().slice(0, 10);
}
