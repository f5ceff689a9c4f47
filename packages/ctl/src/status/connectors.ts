import type { Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import type { JsonObject } from '@millrace/db';
import type { RemoteDatabase } from '@millrace/db/client';
import { positionsCollection } from '../connect/positions-collection.js';
import type { Position } from '../connect/positions.js';

/** How far a connector is. */
export interface ConnectorState {
  readonly name: string;
  readonly collection: string;
  readonly queue: string;
  /** Last commit whose changes are in the queue. */
  readonly seq: number;
  /** Age of the oldest change that is not in the queue; 0: none; null: unknown. */
  readonly lag_ms: number | null;
  /** When it last saved its position. */
  readonly updated_at: string;
  /** Why it does not continue. */
  readonly error: string | null;
}

const probeMs = 1_000;

/** Reads the saved positions, and from the change log what lies after each. */
export async function readConnectorStates(
  database: RemoteDatabase,
  clock: Clock,
): Promise<ConnectorState[]> {
  const positions = database.collection<Position>(positionsCollection);
  const { records } = await positions.find({ limit: 1_000 });
  const states = records.map(async ({ key, data }) => ({
    name: key,
    collection: data.collection,
    queue: data.queue,
    seq: data.seq,
    lag_ms: await lagOf(database, data, clock),
    updated_at: data.updated_at,
    error: data.error === '' ? null : data.error,
  }));
  return (await Promise.all(states)).sort((a, b) => a.name.localeCompare(b.name));
}

/** The first message after the position is the oldest change, or a bookmark when there is none. */
async function lagOf(
  database: RemoteDatabase,
  { collection, filter, on, resume_token: token, seq }: Position,
  clock: Clock,
): Promise<number | null> {
  const stop = new AbortController();
  const timer = clock.after(probeMs, () => stop.abort());
  try {
    const watch = database.collection<JsonObject>(collection).watch({
      ...(token === '' ? { startSeq: seq + 1 } : { resumeToken: token }),
      ...(filter === null ? {} : { filter: filter as never }),
      heartbeatMs: probeMs / 4,
      signal: stop.signal,
    });
    for await (const { changes, committedAt } of watch) {
      if (changes.length === 0) return 0;
      const isOurs = changes.some(({ op }) => on.includes(op === 'expire' ? 'delete' : op));
      if (isOurs && committedAt) return Math.max(0, clock.now() - committedAt.getTime());
    }
    return null;
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  } finally {
    timer.cancel();
  }
}
