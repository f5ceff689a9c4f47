import { membersIn } from '@millrace/kit/errors';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp, parseTimestamp } from '@millrace/kit/units';
import { heuristicRatio, tokensIn } from './calibrate.js';

export type Feature = DaemonSchema<'SavingsFeature'>;

/** In the order of the report. */
export const features = [
  'check',
  'git',
  'compact',
  'llm_offload',
] as const satisfies readonly Feature[];

/**
 * Basis of token figures: a bytes-per-token ratio, calibrated or not, or the provider's own count.
 */
export type EntryBasis = DaemonSchema<'Basis'> | 'MEASURED';

/** One saving: the raw size, and the size that entered a model. */
export interface Entry {
  /** Unix milliseconds. */
  at: number;
  feature: Feature;
  agentId: string | null;
  repo: string | null;
  rawBytes: number;
  retainedBytes: number;
  rawTokens: number;
  retainedTokens: number;
  basis: EntryBasis;
  /** Part of the raw text that is model output, which has its own price. */
  outputBytes: number;
  outputTokens: number;
}

/** The entry as a ledger line, without the line break. */
export function lineOf(entry: Entry): string {
  return JSON.stringify({
    ts: formatTimestamp(entry.at),
    feature: entry.feature,
    agent_id: entry.agentId,
    repo: entry.repo,
    raw_bytes: entry.rawBytes,
    kept_bytes: entry.retainedBytes,
    raw_tokens: entry.rawTokens,
    kept_tokens: entry.retainedTokens,
    basis: entry.basis,
    ...(entry.feature === 'llm_offload' && {
      output_bytes: entry.outputBytes,
      output_tokens: entry.outputTokens,
    }),
  });
}

/** Parses a line; undefined when it is torn, corrupt, or of an unknown feature. */
export function entryOf(line: string): Entry | undefined {
  const fields = membersIn(line);
  if (!fields) return undefined;
  const at = timeOf(fields['ts']);
  const feature = features.find((each) => each === fields['feature']);
  if (at === undefined || !feature) return undefined;
  const amounts = amountsOf(fields);
  if (!amounts) return undefined;
  const { basis } = fields;
  return {
    at,
    feature,
    agentId: textOf(fields['agent_id']),
    repo: textOf(fields['repo']),
    ...amounts,
    basis: basis === 'CALIBRATED' || basis === 'MEASURED' ? basis : 'HEURISTIC',
  };
}

type Fields = Readonly<Record<string, unknown>>;

type Amounts = Pick<
  Entry,
  'rawBytes' | 'retainedBytes' | 'rawTokens' | 'retainedTokens' | 'outputBytes' | 'outputTokens'
>;

/** Missing bytes count as 0; missing tokens are derived from bytes. */
function amountsOf(fields: Fields): Amounts | undefined {
  const bytes = (name: string) => amountOf(fields[`${name}_bytes`] ?? 0);
  const tokens = (name: string) =>
    amountOf(fields[`${name}_tokens`] ?? tokensIn(bytes(name) ?? 0, heuristicRatio));
  const amounts = {
    rawBytes: bytes('raw'),
    retainedBytes: bytes('kept'),
    rawTokens: tokens('raw'),
    retainedTokens: tokens('kept'),
    outputBytes: bytes('output'),
    outputTokens: tokens('output'),
  };
  const isWhole = Object.values(amounts).every((amount) => amount !== undefined);
  return isWhole ? (amounts as Amounts) : undefined;
}

function amountOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Written as RFC 3339; Unix seconds are accepted too. */
function timeOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value >= 0 && value < 1e11 ? value * 1000 : undefined;
  if (typeof value !== 'string') return undefined;
  try {
    return parseTimestamp(value);
  } catch {
    return undefined;
  }
}
