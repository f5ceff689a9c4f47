import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DbServer } from './db-server.js';

const server = new DbServer();
beforeAll(() => server.start().then(() => undefined));
afterAll(() => server.remove());

function file(name: string, content: unknown): string {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  writeFileSync(join(server.folder, name), text);
  return name;
}

const person = { required: ['name'], properties: { name: { type: 'string' } } };

test('schema: set, show, list and remove', async () => {
  const set = await server.ctl(['schema', 'set', 'people', file('person.json', person)]);
  expect(set).toMatchObject({
    code: 0,
    out: 'Schema of "people" set, validate: strict. Checked 0 records.\n',
  });
  const refused = await server.ctl(['insert', 'people', '{"name":1}']);
  expect(refused).toMatchObject({
    code: 1,
    err: 'ctl: The document does not match the schema of "people" at "name": must be string.\n',
  });
  const shown = await server.ctl(['schema', 'show', 'people']);
  expect(JSON.parse(shown.out)).toEqual(person);
  expect((await server.ctl(['schema', 'list'])).out).toMatch(/people +strict +1 /);
  expect(await server.json(['schema', 'list'])).toMatchObject({
    schemas: [{ collection: 'people', schema: person, violation_count: 1 }],
  });
  expect(await server.ctl(['schema', 'remove', 'people'])).toMatchObject({ code: 0 });
  const none = await server.ctl(['schema', 'show', 'people']);
  expect(none).toMatchObject({ code: 1, err: expect.stringContaining('has no schema') });
  expect((await server.ctl(['schema', 'list'])).out).toContain('No schemas.');
});

test('schema: existing records that do not match are listed, and --force sets it', async () => {
  for (const key of ['a', 'b']) await server.json(['put', 'old', key, '{"name":7}']);
  const args = ['schema', 'set', 'old', file('old.json', person)];
  const refused = await server.ctl(args);
  expect([refused.code, refused.out]).toEqual([1, '']);
  expect(refused.err).toMatch(/RECORD +FIELD +PROBLEM\na +name +must be string\nb +name/);
  expect(refused.err).toContain('2 of 2 records of "old" do not match, so nothing was changed');
  expect(await server.ctl(['insert', 'old', '{}'])).toMatchObject({ code: 0 });
  const forced = await server.ctl([...args, '--force', '--validate', 'warn']);
  expect(forced.code).toBe(0);
  expect(forced.out).toContain('validate: warn. Checked 3 records; 3 do not match.');
  expect(await server.ctl(['insert', 'old', '{}'])).toMatchObject({ code: 0 });
});

test('schema: a bad file fails, a bad flag is a usage error', async () => {
  const cases: [string[], number, RegExp][] = [
    [['none.json'], 1, /none\.json: no such file/],
    [[file('text.json', 'not json')], 1, /text\.json is not JSON/],
    [[file('list.json', '[]')], 1, /must have a JSON object/],
    [[file('type.json', { type: 'strng' })], 1, /cannot be used: at "type"/],
    [[file('ref.json', { $ref: 'https://example.com/x.json' })], 1, /Other documents are not/],
    [['person.json', '--validate', 'lax'], 2, /Allowed choices are strict, warn/],
    [[], 2, /missing required argument 'file'/],
  ];
  for (const [args, code, message] of cases) {
    const ended = await server.ctl(['schema', 'set', 'people', ...args]);
    expect([args, ended.code]).toEqual([args, code]);
    expect(ended.err).toMatch(message);
  }
});

test('schema: an import stops at the line that does not match, or skips it', async () => {
  await server.json(['schema', 'set', 'in', file('in.json', person)]);
  const lines = file('in.ndjson', '{"name":"a"}\n{"name":2}\n{"name":"c"}\n');
  const stopped = await server.ctl(['import', 'in', lines]);
  expect(stopped.code).toBe(1);
  expect(stopped.err).toMatch(/in\.ndjson:2: .*at "name".*Resume with --start-line 2/);
  const skipped = await server.ctl(['import', 'in', lines, '--keep-going', '--start-line', '2']);
  expect(skipped).toMatchObject({ code: 1, err: expect.stringContaining('in.ndjson:2: ') });
  expect((await server.ctl(['count', 'in'])).out).toBe('2\n');
});

test('collection: drop and rename', async () => {
  for (const key of ['a', 'b']) await server.json(['put', 'from', key, '{"n":1}']);
  expect(await server.ctl(['collection', 'rename', 'from', 'to'])).toMatchObject({
    code: 0,
    out: 'Renamed "from" to "to" with 2 records.\n',
  });
  expect((await server.json(['get', 'to', 'a'])).record).toMatchObject({ key: 'a', rev: 1 });
  await server.json(['put', 'taken', 'x', '{}']);
  const taken = await server.ctl(['collection', 'rename', 'to', 'taken']);
  expect(taken).toMatchObject({ code: 1, err: expect.stringContaining('"taken" exists already') });
  const gone = await server.ctl(['collection', 'rename', 'from', 'again']);
  expect(gone).toMatchObject({ code: 1, err: expect.stringContaining('"from" does not exist') });
  expect(await server.ctl(['collection', 'drop', 'too'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('did you mean "to"?'),
  });
  expect(await server.json(['collection', 'drop', 'to', '--yes'])).toMatchObject({ deleted: 2 });
  const names = (await server.json(['collection', 'list'])).collections.map(
    ({ name }: { name: string }) => name,
  );
  expect(names).not.toContain('to');
  expect(names).not.toContain('from');
  expect(await server.ctl(['find', 'to'])).toMatchObject({ code: 1 });
});

test('index: create, list and drop', async () => {
  for (let n = 0; n < 3; n++) await server.json(['insert', 'ix', `{"n":${n},"g":1}`]);
  expect(await server.ctl(['index', 'create', 'ix', 'g', 'n'])).toMatchObject({
    code: 0,
    out: 'Index on (g, n) of "ix" created, ready.\n',
  });
  expect((await server.ctl(['index', 'create', 'ix', 'g,n'])).out).toContain('exists already');
  expect(await server.json(['index', 'list', 'ix'])).toMatchObject({
    indexes: [{ collection: 'ix', name: 'g,n', state: 'ready' }],
  });
  const failed = await server.ctl(['index', 'create', 'ix', 'g', '--unique']);
  expect(failed).toMatchObject({ code: 1, err: expect.stringContaining('could not be built') });
  for (const fields of [['g'], ['g', 'n']]) {
    expect(await server.ctl(['index', 'drop', 'ix', ...fields])).toMatchObject({ code: 0 });
  }
  const none = await server.ctl(['index', 'drop', 'ix', 'g']);
  expect(none).toMatchObject({ code: 1, err: 'ctl: "ix" has no index "g".\n' });
  expect((await server.json(['index', 'list', 'ix'])).indexes).toEqual([]);
  expect(await server.ctl(['index', 'create', 'ix'])).toMatchObject({ code: 2 });
});

test('collection: one that does not exist is an error with near names, in the shell too', async () => {
  await server.json(['put', 'people', 'ada', '{"age":36}']);
  const commands = [
    ['find', 'peple'],
    ['count', 'peple'],
    ['export', 'peple'],
    ['index', 'advise', 'peple'],
  ];
  for (const args of commands) {
    const ended = await server.ctl(args);
    expect([args, ended.code, ended.out]).toEqual([args, 1, '']);
    expect(ended.err).toContain('did you mean "people"?');
  }
  for (const line of ['find peple', 'count peple', 'export peple']) {
    const ended = await server.ctl(['shell'], { input: `${line}\n` });
    expect([line, ended.code]).toEqual([line, 1]);
    expect(ended.err).toContain('did you mean "people"?');
  }
  const shell = await server.ctl(['shell'], { input: 'count people\nshow collections\n' });
  expect(shell.code).toBe(0);
  expect(shell.out).toMatch(/^1\nCOLLECTION/);
  for (const condition of ['age>>', 'age==5', 'age<>5', 'age>']) {
    const ended = await server.ctl(['find', 'people', condition]);
    expect([condition, ended.code, ended.out]).toEqual([condition, 2, '']);
  }
});
