/** Records and related objects as JSON, in the shapes of the REST API. */
import type { AggregateResult, PlanReport, StoredRecord, WatchMessage } from '@millrace/db';

export function recordJson(record: StoredRecord<object>) {
  return {
    id: record.id,
    key: record.key,
    rev: record.rev,
    data: record.data,
    created_at: record.createdAt.toISOString(),
    updated_at: record.updatedAt.toISOString(),
    seq: record.seq,
    ...(record.expiresAt ? { expires_at: record.expiresAt.toISOString() } : {}),
    ...(record.score === undefined ? {} : { score: record.score }),
    ...(record.highlights ? { highlights: record.highlights } : {}),
  };
}

export function planJson(plan: PlanReport) {
  return {
    index: plan.index,
    rows_scanned: plan.rowsScanned,
    rows_returned: plan.rowsReturned,
    full_scan: plan.fullScan,
    sorted_in_memory: plan.sortedInMemory,
    elapsed_ms: plan.elapsedMs,
    ...(plan.note === undefined ? {} : { note: plan.note }),
  };
}

export function aggregateJson(result: AggregateResult & { readSeq: number }, explain: boolean) {
  const { groups, plan, readSeq } = result;
  const shown = groups.map(({ key, count, values }) => ({ key, count, values }));
  return { groups: shown, read_seq: readSeq, ...(explain ? { plan: planJson(plan) } : {}) };
}

export function watchJson(message: WatchMessage) {
  return {
    kind: `WATCH_KIND_${message.kind.toUpperCase()}`,
    seq: message.seq,
    epoch: message.epoch,
    ...(message.committedAt ? { committed_at: message.committedAt.toISOString() } : {}),
    changes: message.changes.map(({ op, collection, record, before, entered, left }) => ({
      op: `CHANGE_OP_${op.toUpperCase()}`,
      collection,
      record: 'data' in record ? recordJson(record) : record,
      ...(before ? { before: recordJson(before) } : {}),
      entered,
      left,
    })),
    resume_token: message.resumeToken,
    leader_seq: message.leaderSeq,
  };
}

/** Durations, which the REST API has as text. */
const durations: Readonly<Record<string, string>> = {
  lagMs: 'lag_time',
  leaseRemainingMs: 'lease_remaining',
  elapsedMs: 'elapsed',
  defaultTtlMs: 'default_ttl',
};

/** A status or a part of it, with the names of the REST API. */
export function statusJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(statusJson);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  const entries = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    if (name === 'indexes') return [[name, each]];
    const duration = durations[name];
    if (duration === undefined) return [[snakeCase(name), statusJson(each)]];
    // Without a default TTL there is none to show.
    return name === 'defaultTtlMs' && each === 0 ? [] : [[duration, secondsText(each as number)]];
  });
  return Object.fromEntries(entries);
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** `0.250s`, the protobuf JSON form of a duration. */
export function secondsText(durationMs: number): string {
  const whole = Math.round(durationMs);
  return whole % 1000 === 0 ? `${whole / 1000}s` : `${(whole / 1000).toFixed(3)}s`;
}
