import { expect, test } from 'vitest';
import { auditFault, auditToWire, chainAct, type WireAuditRecord } from './audit.js';

const act = {
  at: Date.UTC(2026, 0, 5),
  principal: 'ada',
  action: 'redrive',
  queue: 'mail',
  selector: { filter: { error_type: 'TIMEOUT' } },
  count: 3,
} as const;

function chain(length: number): WireAuditRecord[] {
  const records: WireAuditRecord[] = [];
  let last;
  for (let i = 0; i < length; i++) {
    last = chainAct(last, { ...act, count: i });
    records.push(auditToWire(last));
  }
  return records;
}

const faults = (records: readonly WireAuditRecord[]) =>
  records.map((record, i) => auditFault(records[i - 1], record));

test('audit chain: an unchanged chain is valid', () => {
  expect(faults(chain(4))).toEqual([undefined, undefined, undefined, undefined]);
});

test.each([
  { principal: 'bob' },
  { count: 9 },
  { selector: null },
  { at: '2026-01-05T00:00:00.001Z' },
  { queue: 'male' },
  { action: 'purge' as const },
])('a record changed to %j is found', (change) => {
  const records = chain(3);
  Object.assign(records[1]!, change);
  expect(faults(records)[1]).toContain('Record 2 was changed');
});

test('audit chain: a removed, inserted or reordered record is detected', () => {
  const records = chain(4);
  expect(faults(records.toSpliced(1, 1)).some(Boolean)).toBe(true);
  expect(faults(records.toSpliced(1, 0, records[0]!)).some(Boolean)).toBe(true);
  expect(faults([records[1]!, records[0]!]).some(Boolean)).toBe(true);
  expect(faults(records.slice(1))[0]).toContain('Record 2 stands where 1 should be');
});

test('audit chain: a record with a recomputed hash is detected by the next record', () => {
  const records = chain(3);
  const forged = chainAct(
    { seq: 1, hash: records[0]!.hash },
    { ...act, principal: 'mallory', count: 1 },
  );
  records[1] = auditToWire(forged);
  expect(faults(records)[1]).toBeUndefined();
  expect(faults(records)[2]).toContain('another record before it');
});
