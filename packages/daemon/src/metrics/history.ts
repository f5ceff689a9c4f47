import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Database, RowReader, RowWriter } from '@millrace/engine';
import { formatTimestamp } from '@millrace/kit/units';
import { hundredths, type Sample } from './sampler.js';
import { retentionStart, stepFor, stretchesOf, tiers, type Stretch, type Tier } from './tiers.js';
import { fail } from '../core/api.js';

type MetricsHistory = DaemonSchema<'MetricsHistory'>;

const maxDeletedPerWrite = 100;

/**
 * Recorded samples on disk. The newest is a record, so that watchers are notified; the others are
 * rows keyed by tier and start time.
 */
export class History {
  constructor(private readonly database: Database) {}

  async add(sample: Sample): Promise<void> {
    const at = Date.parse(sample.taken_at);
    const fold = foldOf(sample);
    await this.database.transact((target) => {
      target.collection<Sample>('metrics').put('latest', sample);
      const { rows } = target;
      for (const tier of tiers) {
        const key = rowKey(tier, Math.floor(at / tier.widthMs) * tier.widthMs);
        const existing = rows.get(key);
        rows.put(key, encode(joined(existing && decode(existing), fold)));
        deleteOld(rows, tier, at - tier.retentionMs);
      }
    });
  }

  /** Averages per step from `since` to `now`, oldest first. */
  async read(
    since: number,
    requestedStepMs: number | undefined,
    now: number,
  ): Promise<MetricsHistory> {
    const from = Math.max(since, retentionStart(now));
    const stepMs = stepFor(requestedStepMs, from, now);
    const folds = new Map<number, Fold>();
    for (const piece of stretchesOf(from, now + 1, stepMs, now).flatMap((each) => [
      ...piecesOf(each),
    ])) {
      this.database.readRows((rows) => {
        for (const { at, fold } of foldsIn(rows, piece)) {
          const step = Math.floor(at / stepMs) * stepMs;
          folds.set(step, joined(folds.get(step), fold));
        }
      });
      // Weeks are many rows: yield to the event loop between batches.
      await new Promise((resolve) => setImmediate(resolve));
    }
    const samples = [...folds].map(([step, fold]) => sampleOf(fold, Math.max(step, from)));
    return { samples, step_s: Math.round(stepMs / 1000) };
  }
}

const maxRowsPerRead = 500;

function* piecesOf({ tier, from, to }: Stretch): Generator<Stretch> {
  const maxPieceMs = tier.widthMs * maxRowsPerRead;
  for (let at = from; at < to; at += maxPieceMs)
    yield { tier, from: at, to: Math.min(to, at + maxPieceMs) };
}

function* foldsIn(rows: RowReader, { tier, from, to }: Stretch) {
  const range = { start: rowKey(tier, from), end: rowKey(tier, to) };
  for (const { key, value } of rows.range(range)) {
    yield { at: key.readUIntBE(prefixBytes, 6), fold: decode(value) };
  }
}

function deleteOld(rows: RowWriter, tier: Tier, before: number): void {
  const range = {
    start: rowKey(tier, 0),
    end: rowKey(tier, Math.max(0, before)),
    limit: maxDeletedPerWrite,
  };
  const old = [...rows.range(range)];
  for (const { key } of old) rows.remove(key);
}

const prefixBytes = 9;

function rowKey({ letter }: Tier, at: number): Buffer {
  const key = Buffer.alloc(prefixBytes + 6);
  key.write(`metrics:${letter}`, 'latin1');
  key.writeUIntBE(at, prefixBytes, 6);
  return key;
}

function encode(fold: Fold): Buffer {
  return Buffer.from(JSON.stringify(fold));
}

function decode(bytes: Buffer): Fold {
  return JSON.parse(bytes.toString()) as Fold;
}

/** Sum and count of the known values. */
type Mean = [sum: number, count: number];

/** Aggregate of the samples of one interval. Stored as JSON, so the names are short. */
export interface Fold {
  cpu: Mean;
  mem: Mean;
  load: Mean;
  rss: Mean;
  p99: Mean;
  /** From the last sample: an average across a restart is meaningless. */
  memTotal: number;
  uptime: number;
  agents: Record<string, { cpu: Mean; rss: Mean; context: Mean }>;
}

export function foldOf({ system, agents, daemon }: Sample): Fold {
  return {
    cpu: meanOf(system.cpu_pct),
    mem: meanOf(system.mem_used),
    load: meanOf(system.load),
    rss: meanOf(daemon.rss),
    p99: meanOf(daemon.event_loop_p99_ms),
    memTotal: system.mem_total,
    uptime: daemon.uptime_s,
    agents: Object.fromEntries(
      agents.map(({ id, cpu_pct, rss, context_tokens }) => [
        id,
        { cpu: meanOf(cpu_pct), rss: meanOf(rss), context: meanOf(context_tokens) },
      ]),
    ),
  };
}

/** Adds `next`, the later one, to `before` in place: thousands are merged at a time. */
export function joined(before: Fold | undefined, next: Fold): Fold {
  if (!before) return next;
  for (const name of ['cpu', 'mem', 'load', 'rss', 'p99'] as const) add(before[name], next[name]);
  before.memTotal = next.memTotal;
  before.uptime = next.uptime;
  for (const [id, figures] of Object.entries(next.agents)) {
    const existing = before.agents[id];
    if (!existing) before.agents[id] = figures;
    else {
      add(existing.cpu, figures.cpu);
      add(existing.rss, figures.rss);
      add(existing.context, figures.context);
    }
  }
  return before;
}

/** The averages as a sample that starts at `at`. */
export function sampleOf(fold: Fold, at: number): Sample {
  return {
    taken_at: formatTimestamp(at),
    system: {
      cpu_pct: fine(fold.cpu),
      mem_used: whole(fold.mem) ?? 0,
      mem_total: fold.memTotal,
      load: fine(fold.load),
    },
    agents: Object.entries(fold.agents)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([id, { cpu, rss, context }]) => ({
        id,
        cpu_pct: fine(cpu),
        rss: whole(rss),
        context_tokens: whole(context),
      })),
    daemon: {
      rss: whole(fold.rss) ?? 0,
      event_loop_p99_ms: fine(fold.p99),
      uptime_s: fold.uptime,
    },
  };
}

function meanOf(value: number | null): Mean {
  return value === null ? [0, 0] : [value, 1];
}

function add(sum: Mean, more: Mean): void {
  sum[0] += more[0];
  sum[1] += more[1];
}

function fine([total, count]: Mean): number | null {
  return count === 0 ? null : hundredths(total / count);
}

function whole([total, count]: Mean): number | null {
  return count === 0 ? null : Math.round(total / count);
}

const unitsMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `60`, `30s` or `5m` in milliseconds; undefined when absent. */
export function parseStep(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit = 's'] = /^([1-9]\d{0,6})([smhd])?$/.exec(text) ?? [];
  if (count) return Number(count) * unitsMs[unit]!;
  throw fail(
    'INVALID_REQUEST',
    `step must be a width such as 60, 30s or 5m, not ${JSON.stringify(text.slice(0, 60))}.`,
  );
}
