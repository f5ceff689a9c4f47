import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Database, RowReader, RowWriter } from '@millrace/engine';
import { foldOf, joined, sampleOf, type Fold } from './fold.js';
import type { Sample } from './sampler.js';
import { retentionStart, stepFor, stretchesOf, tiers, type Stretch, type Tier } from './tiers.js';

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
