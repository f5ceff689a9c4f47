import { UsageError } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { useScratch } from '../../test/scratch.test-support.js';

const scratch = useScratch();

test('open: indexes can be declared with the name of their collection', async () => {
  const db = await scratch.open({
    collections: { people: { indexes: [{ fields: ['age'] }], defaultTtlMs: 1_000 } },
    indexes: [
      { collection: 'people', fields: ['email'], unique: true },
      { collection: 'orders', fields: ['customer', 'at'], sparse: true },
    ],
  });
  expect(db.indexes().map(({ name }) => name)).toEqual([
    'people(age)',
    'people(email) unique',
    'orders(customer,at)',
  ]);
  const people = db.collection('people');
  expect((await people.insert({ email: 'a' })).expiresAt).toBeInstanceOf(Date);
  await expect(people.insert({ email: 'a' })).rejects.toMatchObject({ code: 'UNIQUE_VIOLATION' });
});

test('open: refuses declarations that cannot be used', async () => {
  const refused = { code: 'BAD_REQUEST' };
  const noFields = { people: { indexes: [{ field: 'age' } as never] } };
  await expect(scratch.open({ collections: noFields })).rejects.toMatchObject(refused);
  const indexes = [{ collection: 'people', fields: [] }];
  await expect(scratch.open({ indexes })).rejects.toMatchObject(refused);
  const nameless = [{ fields: ['age'] } as never];
  await expect(scratch.open({ indexes: nameless })).rejects.toMatchObject({
    code: 'BAD_COLLECTION',
  });
  const collections = { people: { defaultTtlMs: -1 } };
  await expect(scratch.open({ collections })).rejects.toThrow(UsageError);
});
