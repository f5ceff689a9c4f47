import { expect, test } from 'vitest';
import { useScratch } from '../../test/scratch.test-support.js';

const scratch = useScratch();

async function openItems() {
  const db = await scratch.open();
  const items = db.collection('items');
  for (let n = 1; n <= 5; n++) await items.insert({ n });
  return { db, items };
}

test('log trim: keeps what a pin retains', async () => {
  const { db } = await openItems();
  const pin = db.core.pinLog(3);
  await db.trimLog(6);
  expect(db.logPosition).toMatchObject({ seq: 5, oldestSeq: 3 });
  pin.seq = 5;
  await db.trimLog(6);
  expect(db.logPosition.oldestSeq).toBe(5);
  pin.release();
  await db.trimLog(6);
  expect(db.logPosition.oldestSeq).toBe(6);
});

test('log trim: never brings back what is gone', async () => {
  const { db } = await openItems();
  await db.trimLog(4);
  const pin = db.core.pinLog(2);
  await db.trimLog(6);
  expect(db.logPosition.oldestSeq).toBe(4);
  pin.release();
});

test('log trim: keeps what is committed during a full backup', async () => {
  const { db, items } = await openItems();
  const parts = db.backup();
  const header = await parts.next();
  expect(header.value).toMatchObject({ kind: 'header', header: { seq: 5 } });
  await items.insert({ n: 6 });
  await db.trimLog(7);
  expect(db.logPosition.oldestSeq).toBe(6);
  await parts.return();
  await db.trimLog(7);
  expect(db.logPosition.oldestSeq).toBe(7);
});
