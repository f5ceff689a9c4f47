import { join } from 'node:path';
import { memoryLog } from '@millrace/kit/log';
import { Refusal } from '@millrace/kit/errors';
import { describe, expect, test } from 'vitest';
import { restore } from '../maintain/backup/restore.js';
import type { Database } from '../api/database.js';
import { commitDeclarations, keyOf, putDeclaration } from './catalog-changes.js';
import type { JsonObject } from '../value/documents.js';
import { compileSchema } from '../core/json-schema.js';
import { applyCommit } from '../maintain/replica/apply-commit.js';
import { asIncoming } from '../maintain/replica/replica.test-support.js';
import { commitsOf, useScratch } from '../../test/scratch.test-support.js';

const scratch = useScratch();

const person = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string' },
    age: { type: 'integer', minimum: 0 },
    address: { type: 'object', properties: { city: { type: 'string', pattern: '^[A-Z]' } } },
  },
};

async function refusalOf(work: Promise<unknown>): Promise<Refusal> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof Refusal) return error;
  throw new Error('It was not refused', { cause: error });
}

async function pathOf(work: Promise<unknown>): Promise<string> {
  const { code, extra } = await refusalOf(work);
  expect(code).toBe('SCHEMA_VIOLATION');
  return (extra.members!['metadata'] as { path: string }).path;
}

async function openWithSchema(): Promise<Database> {
  const db = await scratch.open();
  expect(await db.schemas.set('people', person)).toMatchObject({ applied: true, checked: 0 });
  return db;
}

describe('schema: every kind of write is validated', () => {
  test('single writes, bulk, many, transactions and steps', async () => {
    const db = await openWithSchema();
    const people = db.collection('people');
    const { id } = await people.insertWithKey('ada', { name: 'Ada', age: 36 });
    expect(await pathOf(people.insert({ name: 7 }))).toBe('name');
    expect(await pathOf(people.insertWithKey('bob', { age: 3 }))).toBe('name');
    expect(await pathOf(people.update(id, { name: 'Ada', age: -1 }))).toBe('age');
    expect(await pathOf(people.merge(id, { address: { city: 'bern' } }))).toBe('address.city');
    expect(await pathOf(people.mergeByKey('ada', { name: null }))).toBe('name');
    expect(await pathOf(people.upsert('cyd', {}))).toBe('name');
    expect(await pathOf(people.updateIfRev({ id }, 1, { name: [] }))).toBe('name');
    expect(await pathOf(people.updateMany({}, { age: 'old' }))).toBe('age');
    const bulk = await people.bulkWrite([
      { insert: { data: { name: 'Bob' } } },
      { insert: { data: { name: 1 } } },
      { upsert: { key: 'ada', data: { age: 1 }, mode: 'merge' } },
    ]);
    expect(bulk.results.map(({ status, error }) => error?.reason ?? status)).toEqual([
      'OK',
      'SCHEMA_VIOLATION',
      'OK',
    ]);
    const atomic = people.bulkWrite(
      [{ insert: { data: { name: 'Cyd' } } }, { insert: { data: {} } }],
      {
        atomic: true,
      },
    );
    expect(await pathOf(atomic)).toBe('name');
    await db.transaction(async (transaction) => {
      expect(await pathOf(people.insert({ name: 0 }, { transaction }))).toBe('name');
      await people.insert({ name: 'Dan' }, { transaction });
    });
    const step = db.transact((target) => target.collection('people').put('eve', { name: 1 }));
    expect(await pathOf(step)).toBe('name');
    expect(await people.count()).toBe(3);
    await db.collection('free').insert({ name: 7 });
  });

  test('a transaction that began before the schema is held against it at the commit', async () => {
    const db = await scratch.open();
    const people = db.collection('people');
    const transaction = await db.begin();
    await people.insert({ name: 7 }, { transaction });
    await db.schemas.set('people', person);
    expect(await pathOf(transaction.commit())).toBe('name');
    expect(await people.count()).toBe(0);
  });
});

describe('schema: set on existing records', () => {
  test('lists the first violations, changes nothing, and applies with force', async () => {
    const db = await scratch.open();
    const people = db.collection('people');
    for (let n = 0; n < 30; n++) await people.insertWithKey(`p${n}`, { name: n });
    await people.insertWithKey('ada', { name: 'Ada' });
    const { seq } = db.logPosition;
    const result = await db.schemas.set('people', person);
    expect(result).toMatchObject({ applied: false, checked: 31, violating: 30, seq: 0 });
    expect(result.violations).toHaveLength(20);
    expect(result.violations[0]).toMatchObject({
      key: 'p0',
      path: 'name',
      message: 'must be string',
    });
    expect(db.logPosition.seq).toBe(seq);
    expect(await db.schemas.get('people')).toBeUndefined();
    await people.insert({ name: 7 });

    const forced = await db.schemas.set('people', person, { force: true });
    expect(forced).toMatchObject({ applied: true, violating: 31, seq: seq + 2 });
    expect(await pathOf(people.insert({ name: 7 }))).toBe('name');
    await people.deleteByKey('p0');
    expect(await pathOf(people.mergeByKey('p1', { age: 1 }))).toBe('name');
  });

  test('a record that arrives during the check counts too', async () => {
    const db = await scratch.open();
    const people = db.collection('people');
    await people.insert({ name: 'Ada' });
    const [result] = await Promise.all([
      db.schemas.set('people', person),
      people.insert({ name: 7 }),
    ]);
    const isStored = (await people.count()) === 2;
    expect(result.applied).toBe(!isStored);
  });
});

test('schema: warn stores, logs and counts', async () => {
  const log = memoryLog();
  const db = await scratch.open({ log });
  const counted: string[] = [];
  db.core.onSchemaViolation = (validate) => counted.push(validate);
  await db.schemas.set('people', person, { validate: 'warn' });
  const people = db.collection('people');
  for (let n = 0; n < 3; n++) await people.insert({ name: n });
  expect(counted).toEqual(['warn', 'warn', 'warn']);
  expect(await db.schemas.get('people')).toMatchObject({ validate: 'warn', violationCount: 3 });
  const lines = log.lines.filter(({ message }) => message === 'schema violation');
  expect(lines).toHaveLength(1);
  expect(lines[0]?.fields).toMatchObject({ collection: 'people', path: 'name' });
});

describe('schema: survives', () => {
  test('restart, removal and compaction', async () => {
    let db = await openWithSchema();
    db = await scratch.reopen(db);
    await db.compact();
    db = await scratch.reopen(db);
    expect(await db.schemas.list()).toMatchObject([{ collection: 'people', validate: 'strict' }]);
    expect((await db.schemas.get('people'))?.schema).toEqual(person);
    expect(await pathOf(db.collection('people').insert({}))).toBe('name');
    expect((await db.verify()).problems).toEqual([]);
    expect(await db.schemas.remove('people')).toBe(db.logPosition.seq);
    await db.collection('people').insert({});
    expect((await refusalOf(db.schemas.remove('people'))).code).toBe('SCHEMA_NOT_FOUND');
    db = await scratch.reopen(db);
    expect(await db.schemas.list()).toEqual([]);
  });

  test('backup, increment and restore', async () => {
    const db = await openWithSchema();
    const full = join(scratch.directory(), 'full');
    const { header } = await db.writeBackup(full);
    await db.schemas.set('people', { ...person, required: ['name', 'age'] });
    const more = join(scratch.directory(), 'more');
    await db.writeBackup(more, { sinceSeq: header.seq });
    for (const [files, path] of [
      [[full], 'name'],
      [[full, more], 'age'],
    ] as const) {
      const directory = join(scratch.directory(), 'restored');
      await restore([...files], directory, { clock: scratch.clock });
      const copy = await scratch.open({}, directory);
      const work = copy.collection('people').insert(path === 'name' ? {} : { name: 'Ada' });
      expect(await pathOf(work)).toBe(path);
      expect((await copy.verify()).problems).toEqual([]);
    }
  });

  test('a follower validates with it after it was promoted', async () => {
    const leader = await openWithSchema();
    await leader.collection('people').insert({ name: 'Ada' });
    const follower = await scratch.open();
    for (const commit of commitsOf(leader)) {
      await applyCommit(follower.core, asIncoming(leader, commit));
    }
    expect(await follower.schemas.list()).toMatchObject([{ collection: 'people' }]);
    expect(await pathOf(follower.collection('people').insert({}))).toBe('name');
    await follower.cutTail(0);
    expect(await follower.schemas.list()).toEqual([]);
  });
});

test('schema: the system collection is out of reach', async () => {
  const db = await openWithSchema();
  expect(db.catalog.collections().map(({ name }) => name)).toEqual(['people']);
  expect(() => db.collection('_catalog')).toThrow('cannot name a collection');
  for (const work of [
    db.writes.insert('_catalog', {}),
    db.writes.upsert('_catalog', 'schema:people', {}),
    db.bulk.write('_catalog', [{ insert: { data: {} } }]),
  ]) {
    expect((await refusalOf(work)).code).toBe('BAD_COLLECTION');
  }
  const watch = db.watch({ startSeq: 1 });
  await db.collection('people').insert({ name: 'Ada' });
  const { value } = await watch.next();
  expect(value).toMatchObject({ changes: [{ collection: 'people' }] });
  await watch.return();
});

describe('compileSchema: refuses with a clear message', () => {
  test.each([
    [{ type: 'strng' }, /at "type": must be equal to one of the allowed values/],
    [{ required: 'name' }, /at "required": must be array/],
    [{ $ref: 'https://example.com/person.json' }, /refers to .*example.com.*not in it/],
    [{ $ref: '#/$defs/none' }, /refers to|resolve/],
    [{ $schema: 'http://json-schema.org/draft-07/schema#' }, /only JSON Schema 2020-12/],
    [{ properties: { a: { pattern: '(?=x)' } } }, /pattern "\(\?=x\)" is not RE2 syntax/],
    [{ properties: { a: { pattern: '(a)\\1' } } }, /is not RE2 syntax/],
    [{ properties: { a: { $async: true } } }, /\$async is not part of JSON Schema/],
    [{ allOf: [{ $ref: '#' }] }, /refers to itself without end/],
  ])('%j', (schema, message) => {
    expect(() => compileSchema(schema as never)).toThrow(message);
  });
});

describe('compileSchema: checks in linear time', () => {
  test('a pattern that makes backtracking engines hang', () => {
    const check = compileSchema({ properties: { a: { pattern: '^(a+)+$' }, b: { pattern: 'b' } } });
    expect(check({ a: `${'a'.repeat(50_000)}!` })?.path).toEqual(['a']);
    // Each pattern is its own.
    expect(check({ a: 'aa', b: 'a' })?.path).toEqual(['b']);
    expect(check({ a: 'aa', b: 'b' })).toBeUndefined();
  });

  test('uniqueItems of a long array', () => {
    const check = compileSchema({ properties: { list: { uniqueItems: true } } });
    const list = Array.from({ length: 100_000 }, (_, n) => ({ n, m: n }));
    expect(check({ list })).toBeUndefined();
    expect(check({ list: [...list, { m: 7, n: 7 }] })?.message).toContain('duplicate');
  });
});

test('compileSchema: names the field of nested, missing and additional properties', () => {
  const check = compileSchema({
    type: 'object',
    properties: {
      list: { items: { required: ['a'], additionalProperties: false, properties: { a: {} } } },
      kind: { enum: ['x', 'y'] },
      mail: { format: 'email' },
    },
    if: { properties: { kind: { const: 'y' } }, required: ['kind'] },
    else: {},
    ...JSON.parse('{"then":{"required":["list"]}}'),
  });
  expect(check({ list: [{ a: 1 }, {}] })?.path).toEqual(['list', '1', 'a']);
  expect(check({ list: [{ a: 1, 'b/c': 2 }] })?.path).toEqual(['list', '0', 'b/c']);
  expect(check({ kind: 'z' })?.message).toBe(
    'must be equal to one of the allowed values: ["x","y"]',
  );
  expect(check({ kind: 'y' })?.path).toEqual(['list']);
  expect(check({ mail: 'nobody' })?.path).toEqual(['mail']);
  expect(check({ kind: 'x', mail: 'a@b.ch' })).toBeUndefined();
});

/** Every level applies the next one twice. */
function doubling(levels: number): JsonObject {
  const $defs: JsonObject = { [`level${levels}`]: { type: 'object' } };
  for (let at = 0; at < levels; at++) {
    const $ref = `#/$defs/level${at + 1}`;
    $defs[`level${at}`] = { allOf: [{ $ref }, { $ref }] };
  }
  return { $defs, properties: { x: { $ref: '#/$defs/level0' } } };
}

describe('schema: work is bounded', () => {
  test('a definition that many places refer to is compiled once', () => {
    const names = (count: number, value: JsonObject) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, value]));
    const check = compileSchema({
      $defs: { wide: { type: 'object', properties: names(400, { type: 'string' }) } },
      properties: names(400, { $ref: '#/$defs/wide' }),
    });
    expect(check({ p399: { p399: 1 } })).toMatchObject({ path: ['p399', 'p399'] });
    expect(check({ p399: { p399: 'a' } })).toBeUndefined();
  });

  test('too many evaluation paths are refused, and the error names the part', () => {
    expect(() => compileSchema(doubling(28))).toThrow(/"#\/\$defs\/level10" has 1048573/);
    expect(() => compileSchema(doubling(40))).toThrow(/refer to a shared definition once/);
    expect(() => compileSchema(doubling(10))).not.toThrow();
  });

  test('a recursive schema counts once', () => {
    const $ref = '#';
    const tree = { type: 'object', properties: { left: { $ref }, right: { $ref } } };
    expect(compileSchema(tree)({ left: { right: 1 } })).toMatchObject({ path: ['left', 'right'] });
  });

  test('too many parts are refused', () => {
    const parts = Array.from({ length: 6_000 }, (_, minimum) => ({ minimum }));
    expect(() => compileSchema({ properties: { x: { anyOf: parts } } })).toThrow(/6003 parts/);
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['doubling references', doubling(40), { x: {} }],
    [
      'references that double with the depth of the document',
      {
        $defs: { d: { properties: { x: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } } },
        $ref: '#/$defs/d',
      },
      nested(30),
    ],
    [
      'a long list against a long enum',
      {
        properties: { x: { items: { enum: Array.from({ length: 5_000 }, (_, at) => `e${at}`) } } },
      },
      { x: Array.from({ length: 100_000 }, () => 'e4999') },
    ],
    [
      'many names against many patterns',
      {
        patternProperties: Object.fromEntries(
          Array.from({ length: 500 }, (_, at) => [`^z${at}`, { minimum: 1 }]),
        ),
      },
      Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`a${at}`, 1])),
    ],
  ])('a document that takes too many steps is refused: %s', (_name, schema, document) => {
    expect(compileSchema(schema, true)(document)?.message).toMatch(
      /takes more than 10000000 steps/,
    );
  });

  test('a stored schema over the limit still opens, and limits its documents', async () => {
    const db = await scratch.open();
    await expect(db.schemas.set('people', doubling(28))).rejects.toThrow(/1000000/);
    // As an earlier version stored it.
    await db.core.writer.submit(() =>
      commitDeclarations(db.core, (commit) => {
        const declaration = { collection: 'people', schema: JSON.stringify(doubling(28)) };
        putDeclaration(db.core, commit, keyOf.schema('people'), declaration);
      }),
    );
    const { directory } = db;
    await db.close();
    const again = await scratch.open({}, directory);
    const people = again.collection('people');
    await people.insert({ y: 1 });
    expect((await refusalOf(people.insert({ x: {} }))).detail).toMatch(/takes more than/);
  });
});

function nested(depth: number): JsonObject {
  return depth === 0 ? {} : { x: nested(depth - 1) };
}
