import { auditHash, type WireAuditRecord } from '@millrace/queue';
import { expect, test } from 'vitest';
import { judge } from './audit-verify.js';

/** A whole log, the first record first. */
function logOf(length: number): WireAuditRecord[] {
  const records: WireAuditRecord[] = [];
  for (let seq = 1; seq <= length; seq++) {
    const record = {
      seq,
      at: '2026-03-02T10:05:00.000Z',
      principal: 'ops',
      action: 'redrive' as const,
      queue: 'mail',
      selector: { filter: {} },
      count: seq,
      prev_hash: records.at(-1)?.hash ?? '0'.repeat(64),
    };
    records.push({ ...record, hash: auditHash(record) });
  }
  return records;
}

async function* latestFirst(records: readonly WireAuditRecord[]) {
  yield* records.toReversed();
}

test('a whole log is whole, and so is an empty one', async () => {
  const log = logOf(5);
  expect(await judge(latestFirst(log))).toEqual({
    ok: true,
    records: 5,
    last_seq: 5,
    last_hash: log[4]!.hash,
    fault: null,
  });
  expect(await judge(latestFirst([]))).toMatchObject({ ok: true, records: 0, last_hash: null });
});

test('the first record that was changed is reported, not the latest', async () => {
  const log = logOf(6);
  log[1] = { ...log[1]!, count: 0 };
  log[4] = { ...log[4]!, principal: 'somebody' };
  expect(await judge(latestFirst(log))).toMatchObject({
    ok: false,
    fault: { seq: 2, message: 'Record 2 was changed.' },
  });
});

test('a change with its hash made again shows in the record after it', async () => {
  const log = logOf(4);
  const changed = { ...log[1]!, count: 0 };
  log[1] = { ...changed, hash: auditHash(changed) };
  expect((await judge(latestFirst(log))).fault?.seq).toBe(3);
});

test.each([
  ['the first', 0, 2],
  ['one in the middle', 2, 4],
])('%s that is missing leaves a gap', async (_, at, seq) => {
  const log = logOf(5).toSpliced(at, 1);
  expect((await judge(latestFirst(log))).fault?.seq).toBe(seq);
});

test('a record slipped in is noticed', async () => {
  const log = logOf(4);
  log.splice(2, 0, { ...log[1]!, seq: 3 });
  expect((await judge(latestFirst(log))).ok).toBe(false);
});
