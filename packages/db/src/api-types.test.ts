import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { CollectionApi, DatabaseApi, Filter, FindQuery } from './client/api.js';
import type { Collection, Database } from '@millrace/engine';

interface Person {
  name: string;
  age: number;
  active?: boolean;
  role: 'admin' | 'user';
  tags: string[];
  address?: { city: string; geo: { lat: number } };
  orders: { sku: string; price: number }[];
}

declare const db: DatabaseApi;
declare const people: CollectionApi<Person>;

/** Never called: `tsc` checks it, and an unused `@ts-expect-error` is an error. */
export async function mistakes(): Promise<void> {
  // @ts-expect-error 1: unknown field
  await people.find({ filter: { agee: 3 } });
  // @ts-expect-error 2: wrong value type
  await people.find({ filter: { age: '3' } });
  // @ts-expect-error 3: wrong value type of an operator
  await people.find({ filter: { age: { gt: '3' } } });
  // @ts-expect-error 4: unknown operator
  await people.find({ filter: { age: { gtt: 3 } } });
  // @ts-expect-error 5: operator without a value
  await people.find({ filter: { age: { gt: undefined } } });
  // @ts-expect-error 6: no operator
  await people.find({ filter: { age: {} } });
  // @ts-expect-error 7: unknown nested field
  await people.find({ filter: { 'address.town': 'Bern' } });
  // @ts-expect-error 8: wrong type at a nested path
  await people.find({ filter: { 'address.city': 5 } });
  // @ts-expect-error 9: nested object instead of a path
  await people.find({ filter: { address: { city: 'Bern' } } });
  // @ts-expect-error 10: wrong type at depth 3
  await people.find({ filter: { 'address.geo.lat': { between: ['a', 'b'] } } });
  // @ts-expect-error 11: between takes two values
  await people.find({ filter: { age: { between: [1] } } });
  // @ts-expect-error 12: in takes a list
  await people.find({ filter: { age: { in: 3 } } });
  // @ts-expect-error 13: a value that the union does not have
  await people.find({ filter: { role: 'owner' } });
  // @ts-expect-error 14: prefix of a number
  await people.find({ filter: { age: { prefix: 'x' } } });
  // @ts-expect-error 15: regex that is not a text
  await people.find({ filter: { name: { regex: 5 } } });
  // @ts-expect-error 16: element of the wrong type
  await people.find({ filter: { tags: { contains: 5 } } });
  // @ts-expect-error 17: exists takes a boolean
  await people.find({ filter: { active: { exists: 'yes' } } });
  // @ts-expect-error 18: wrong type inside an array of objects
  await people.find({ filter: { 'orders.price': 'high' } });
  // @ts-expect-error 19: mistake inside or
  await people.find({ filter: { or: [{ age: 1 }, { name: 1 }] } });
  // @ts-expect-error: $inc on a text
  await people.update('id', { $inc: { name: 1 } });
  // @ts-expect-error: $set of the wrong type
  await people.update('id', { $set: { age: '3' } });
  // @ts-expect-error: $push on what is no array
  await people.update('id', { $push: { age: 3 } });
  // @ts-expect-error: $push of the wrong element
  await people.updateMany({}, { $push: { tags: 3 } });
  // @ts-expect-error: unknown operator
  await people.update('id', { $incr: { age: 1 } });
  await people.update({ key: 'k' }, { $inc: { age: 1, 'address.geo.lat': 2 }, $unset: ['active'] });
  await people.updateMany({ age: 3 }, { $push: { tags: { each: ['a'], slice: 3 } } });
  await people.find({ filter: { name: { gt: new Date() }, tags: { all: ['a'], size: 2 } } });
  // @ts-expect-error: size of a number
  await people.find({ filter: { age: { size: 2 } } });
  // @ts-expect-error 20: mistake inside not
  await people.find({ filter: { not: { role: 'owner' } } });
  // @ts-expect-error 21: condition without a value
  await people.find({ filter: { field: 'age', op: 'gt' } });
  // @ts-expect-error 22: condition with an unknown operator
  await people.find({ filter: { field: 'age', op: 'above', value: 3 } });
  // @ts-expect-error 23: unknown field in the order
  await people.find({ orderBy: { agee: 'desc' } });
  // @ts-expect-error 24: unknown direction
  await people.find({ orderBy: { age: 'down' } });
  // @ts-expect-error 25: unknown field in the projection
  await people.find({ fields: ['nam'] });
  const named = await people.findOne({ fields: ['name'] });
  // @ts-expect-error 26: a field that was not asked for
  named?.data.age.toFixed();
  const byKey = await people.findByKey('ada', { fields: ['age'] });
  // @ts-expect-error 27: the same on a read by key
  byKey?.data.name.trim();
  // @ts-expect-error 28: document without a required field
  await people.insert({ name: 'Ada', age: 36 });
  // @ts-expect-error 29: patch of the wrong type
  await people.merge('id', { age: 'old' });
  // @ts-expect-error 30: unknown metadata field
  await people.count({ $version: 3 });
  // @ts-expect-error 31: unknown member of a query
  await people.find({ where: { age: 3 } });
  // @ts-expect-error 32: metadata of the wrong type
  await people.count({ $rev: 'one' });
  const strict = db.collection('people', z.object({ name: z.string(), age: z.number() }));
  // @ts-expect-error 33: a document that the schema does not accept
  await strict.insert({ name: 'Ada', age: '36' });
  // @ts-expect-error 34: a field that the schema does not have
  await strict.find({ filter: { city: 'Bern' } });
  await db.transaction(async (tx) => {
    // @ts-expect-error 35: the collection of the transaction has the same type
    await tx.collection(people).update('id', { name: 'Ada' });
  });
}

/** What must compile. */
export async function allowed(loose: Filter): Promise<void> {
  await people.find({
    filter: { age: { gt: 30, lte: 60 }, 'address.city': 'Bern', role: { in: ['admin'] } },
    fields: ['name'],
    orderBy: { age: 'desc' },
  });
  await people.find({ filter: { or: [{ 'address.geo.lat': 1 }, { not: { tags: ['a'] } }] } });
  await people.find({ filter: { 'orders.sku': 'x', 'orders.0.price': { gt: 1 } } });
  await people.find({ filter: { address: { exists: false }, $created_at: { gt: '2030-01-01' } } });
  await people.find({ filter: { field: 'a.b.c.d.e', op: 'eq', value: 1 } });
  await people.find({ filter: loose });
  await db.collection('any').find({ filter: { a: 1, 'b.c': { gt: 2 } }, fields: ['a'] });
  const created = db.collection('users', z.object({ n: z.number().default(1) }));
  await created.insert({});
}

describe('types', () => {
  test('types: fields narrow the data of a result', () => {
    type Found = Awaited<ReturnType<typeof find>>['records'][number]['data'];
    const find = () => people.find({ fields: ['name'] });
    expectTypeOf<Found>().toEqualTypeOf<Pick<Person, 'name'>>();
    const all = () => people.find({ filter: { age: 3 } });
    type All = Awaited<ReturnType<typeof all>>['records'][number]['data'];
    expectTypeOf<All>().toEqualTypeOf<Person>();
    const nested = () => people.findOne({ fields: ['name', 'address.city'] });
    type Nested = NonNullable<Awaited<ReturnType<typeof nested>>>['data'];
    expectTypeOf<Nested>().branded.toEqualTypeOf<{ name: string; address?: { city: string } }>();
  });

  test('types: a query can be a variable, also in a generic helper', () => {
    const query: FindQuery<Person> = { filter: { age: 3 }, limit: 5 };
    const find = () => people.find(query);
    type Found = Awaited<ReturnType<typeof find>>['records'][number]['data'];
    expectTypeOf<Found>().toEqualTypeOf<Person>();
    const first = async <T extends object>(from: CollectionApi<T>, by: FindQuery<T, never>) =>
      (await from.find({ ...by, limit: 1 })).records[0]?.data;
    expectTypeOf(first<Person>).returns.resolves.toEqualTypeOf<Person | undefined>();
  });

  test('read: a collection in a snapshot has the type of the collection', () => {
    const get = (database: Database, of: Collection<Person>) =>
      database.read((view) => view.collection(of).get('x')?.data);
    expectTypeOf(get).returns.toEqualTypeOf<Person | undefined>();
    const checked = (database: Database, of: Collection<{ n: number }, { n?: number }>) =>
      database.read((view) => view.collection(of).getByKey('x')?.data);
    expectTypeOf(checked).returns.toEqualTypeOf<{ n: number } | undefined>();
  });

  test('types: a schema gives input and output types', () => {
    const create = () => db.collection('users', z.object({ n: z.number().default(1) }));
    type Users = ReturnType<typeof create>;
    expectTypeOf<Parameters<Users['insert']>[0]>().toEqualTypeOf<{ n?: number | undefined }>();
    expectTypeOf<Awaited<ReturnType<Users['insert']>>['data']>().toEqualTypeOf<{ n: number }>();
  });
});
