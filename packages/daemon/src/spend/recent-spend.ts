import { homedir } from 'node:os';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { memoryLog } from '@millrace/kit/log';
import { noTokens, joined, type Detection } from '../transcripts/reader.js';
import { transcriptReaders } from '../transcripts/readers.js';
import { Scanner } from '../transcripts/scanner.js';
import { blocksOf } from './blocks.js';
import { rollup } from './rollup.js';
import { PlaceNumbers } from './rows.js';
import { slotMs, type Cell } from './tally.js';

export interface RecentSpend {
  /** List price of the local day so far; null when no model has a known price. */
  todayUsd: number | null;
  /** The present five-hour block of claude; null: there is none. */
  block: DaemonSchema<'UsageBlock'> | null;
}

const dayMs = 86_400_000;

/** What was spent lately, from the transcripts alone: for a machine where no daemon runs. */
export async function recentSpend(
  environment: Readonly<Record<string, string | undefined>>,
  now: number,
): Promise<RecentSpend> {
  const messages = new Map<string, Detection>();
  const scanner = new Scanner({
    readers: transcriptReaders,
    places: { home: environment['HOME'] || homedir(), environment },
    log: memoryLog(),
    since: now - dayMs,
    tally: {
      states: new Map(),
      commit: async ({ detections }) => {
        for (const each of detections) {
          const before = messages.get(each.key);
          messages.set(each.key, before ? joined(before, each) : each);
        }
      },
    },
  });
  await scanner.scan();
  const sums = sumsOf([...messages.values()].filter(({ at }) => at > now - dayMs && at <= now));
  const spanOf = (from: number, to: number) => {
    const times = [...messages.values()]
      .filter(({ at, place }) => place.backend === 'claude' && at >= from && at <= to)
      .map(({ at }) => at);
    if (times.length === 0) return undefined;
    return { first: Math.min(...times), last: Math.max(...times) };
  };
  const { daily_exact_usd: todayUsd = null } = rollup(sums, { now, basis: 'HEURISTIC' });
  const blocks = blocksOf(sums, { now, backend: 'claude', spanOf });
  return { todayUsd, block: blocks.find(({ is_active }) => is_active) ?? null };
}

function sumsOf(messages: readonly Detection[]) {
  const places = new PlaceNumbers();
  const cells = messages.map(({ at, place, tokens }): Cell => {
    if (places.numberOf(place) === undefined) places.add({ ...place, repo: 'unknown' });
    const number = places.numberOf(place)!;
    return { slot: Math.floor(at / slotMs), place: number, tokens: { ...noTokens, ...tokens } };
  });
  return {
    cells: () => cells,
    place: (number: number) => places.at(number),
    used: () => new Map<number, { input: number; output: number }>(),
  };
}
