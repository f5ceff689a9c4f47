import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { otherVersion, type DaemonApi } from '../daemon/api.js';
import { whileShown } from '../db/progress.js';
import type { Tools } from '../base/tools.js';

type SpendRollup = DaemonSchema<'SpendRollup'>;
type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

/** Most scans are done sooner. */
const delayMs = 1_000;
/** A daemon whose scan takes longer returns the figures that it knows. */
const slowMs = 10_000;

/**
 * Spend with every transcript in it. The first scan of a daemon can take minutes: on a terminal it
 * is shown and waited for, elsewhere the figures so far come with a warning.
 */
export async function readWholeSpend(
  api: DaemonApi,
  here: Here,
  clock: Pick<Clock, 'monotonic'> = systemClock,
): Promise<SpendRollup> {
  for (;;) {
    const startedAt = clock.monotonic();
    const rollup = await whileShown(here, {
      verb: 'Reading transcripts',
      work: () => readSpend(api),
      read: () => scanOf(api),
      delayMs,
    });
    const waitedMs = clock.monotonic() - startedAt;
    const scan = waitedMs < slowMs ? undefined : await scanOf(api);
    // A scan that began later than the request does not concern it.
    if (!scan || scan.elapsedMs < waitedMs) return rollup;
    if (here.terminal.err.isScreen) continue;
    warn(scan, here);
    return rollup;
  }
}

interface Scan {
  done: number;
  of: number;
  elapsedMs: number;
}

async function scanOf(api: DaemonApi): Promise<Scan | undefined> {
  try {
    const { transcript_scan: scan } = await api.call('getMetrics');
    return scan && { done: scan.bytes_read, of: scan.bytes_total, elapsedMs: scan.elapsed_ms };
  } catch (error) {
    // The figures are there; only how complete they are is not known.
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

function warn({ done, of }: Scan, { terminal: { err } }: Here): void {
  const percent = of > 0 ? Math.floor((100 * done) / of) : 0;
  const text = `The daemon has read ${percent}% of the transcripts. Run it again for the rest.`;
  err.write(`${err.paint('warn', 'Warning:')} ${text}\n`);
}

export async function readSpend(api: DaemonApi): Promise<SpendRollup> {
  const rollup = await api.call('getSpend');
  if (isRollup(rollup)) return rollup;
  throw otherVersion(api, 'spend rollup');
}

function isRollup(value: unknown): value is SpendRollup {
  if (typeof value !== 'object' || value === null) return false;
  const { total_usd: total, by_day: days, by_agent: agents, by_repo: repos } = value as SpendRollup;
  return typeof total === 'number' && [days, agents, repos].every((rows) => Array.isArray(rows));
}
