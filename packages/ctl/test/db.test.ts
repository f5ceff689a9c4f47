import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DbServer } from './db-server.js';
import { ctlHere as ctl, startCtl } from './run-ctl.js';

const server = new DbServer();
beforeAll(() => server.start().then(() => undefined));
afterAll(() => server.remove());

test('import and export read and write CSV and JSON arrays', async () => {
  const write = (name: string, text: string) => writeFileSync(join(server.folder, name), text);
  write('u.csv', 'name,qty,zip,a.b,tags,ok\r\n"Ada, B",3,007,x,"[1,2]",true\n\nBob,,8001,,,\n');
  const csv = ['import', 'users', 'u.csv', '--types', 'zip:text,tags:json', '--key-field', 'name'];
  expect(await server.json(csv)).toMatchObject({ created: 2, failed: [] });
  const data = async (key: string) => (await server.json(['get', 'users', key])).record.data;
  expect(await data('Ada, B')).toEqual({
    name: 'Ada, B',
    qty: 3,
    zip: '007',
    a: { b: 'x' },
    tags: [1, 2],
    ok: true,
  });
  expect(await data('Bob')).toEqual({ name: 'Bob', zip: '8001' });
  const { out } = await server.ctl(['export', 'users', '-o', 'csv']);
  expect(out.split('\n')[0]).toBe('$id,$key,name,qty,zip,a.b,tags,ok');
  write('copy.csv', out);
  await server.json(['import', 'copy', 'copy.csv', '--types', 'tags:json']);
  const again = await server.ctl(['export', 'copy', '--format', 'csv']);
  const withoutIds = (text: string) => text.replaceAll(/^\w{26},/gm, '');
  expect(withoutIds(again.out)).toBe(withoutIds(out));
  await server.json(['export', 'users', '--out', 'u.json']);
  expect(JSON.parse(readFileSync(join(server.folder, 'u.json'), 'utf8'))).toHaveLength(2);
  expect(await server.json(['import', 'third', 'u.json'])).toMatchObject({ created: 2 });
  write('u.ndjson', 'name,qty\nAda,3\n');
  write('v.csv', '[{"n":1}]');
  write('w.csv', 'n,m\n1,x\n');
  const errorOf = async (...args: string[]) => (await server.ctl(['import', 'x', ...args])).err;
  expect(await errorOf('u.ndjson')).toBe(
    'ctl: u.ndjson was read as JSON lines, and begins like CSV. Read it with --format csv\n',
  );
  expect(await errorOf('v.csv')).toContain('begins like a JSON array. Read it with --format json');
  expect(await errorOf('w.csv', '--types', 'm:number')).toContain(
    'w.csv:2: "x" in m is not a number',
  );
  expect(await errorOf('w.csv', '--types', 'q:number')).toContain('has no header "q"');
});

describe('a CSV export that is read again gives', () => {
  const write = (name: string, text: string) => writeFileSync(join(server.folder, name), text);
  let count = 0;
  const stored = async (records: object[]) => {
    const name = `csv-${++count}`;
    write('from.ndjson', records.map((data) => `${JSON.stringify({ data })}\n`).join(''));
    expect(await server.json(['import', name, 'from.ndjson'])).toMatchObject({ failed: [] });
    return name;
  };
  /** The documents of a copy by way of CSV. */
  const copied = async (records: object[], ...types: string[]) => {
    const from = await stored(records);
    const { out } = await server.ctl(['export', from, '--format', 'csv', '--documents']);
    write('to.csv', out);
    await server.json(['import', `${from}-copy`, 'to.csv', ...types]);
    const { out: lines } = await server.ctl(['export', `${from}-copy`, '--documents']);
    return lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  };

  test('fields that are an object in some records and not in others', async () => {
    const records = [
      { n: 'A', address: {}, v: 5 },
      { n: 'B', address: { city: 'Bern' }, v: { a: { b: 1 } } },
      { n: 'C', address: 'Oslo', v: 'x' },
    ];
    expect(await copied(records, '--types', 'address:json,v:json')).toEqual(records);
    expect(await copied(records)).toMatchObject(records.map(({ n }) => ({ n })));
  });

  test('records without any of its fields', async () => {
    expect(await copied([{ n: 1 }, {}, { n: 2 }])).toEqual([{ n: 1 }, {}, { n: 2 }]);
    expect(await copied([{}, {}])).toEqual([{}, {}]);
  });

  test.each(['a.b', '', ' a'])('no field named "%s", which is refused', async (name) => {
    const from = await stored([{ [name]: 1 }]);
    const { code, out, err } = await server.ctl(['export', from, '--format', 'csv']);
    expect([code, out, err]).toEqual([1, '', expect.stringContaining('export it as NDJSON')]);
  });
});

describe('records', () => {
  test('put, get, insert and delete show the record, as a sheet or as REST has it', async () => {
    const put = await server.json(['put', 'one', 'ada', '{"name":"Ada","age":36}']);
    expect(put).toMatchObject({
      created: true,
      record: { key: 'ada', rev: 1, seq: expect.any(Number) },
    });
    expect(Object.keys(put.record)).toEqual([
      'id',
      'key',
      'rev',
      'data',
      'created_at',
      'updated_at',
      'seq',
    ]);
    const merged = await server.json(['put', 'one', 'ada', '{"age":37,"name":null}', '--merge']);
    expect(merged).toMatchObject({ created: false, record: { rev: 2, data: { age: 37 } } });
    const sheet = await server.ctl(['get', 'one', 'ada']);
    expect([sheet.code, sheet.err]).toEqual([0, '']);
    expect(sheet.out).toMatch(
      /^id +\w{26}\nkey +ada\nrev +2\ncreated .*\nupdated .*\n\{\n {2}"age": 37\n\}\n$/,
    );
    const byId = await server.json(['get', 'one', put.record.id, '--fields', 'age']);
    expect(byId.record.data).toEqual({ age: 37 });
    const inserted = await server.json(['insert', 'one', '-', '--ttl', '1h'], '{"n":1}');
    expect(inserted.record).toMatchObject({ key: '', data: { n: 1 } });
    expect(Date.parse(inserted.record.expires_at)).toBeGreaterThan(Date.now());
    const file = join(server.folder, 'bob.json');
    writeFileSync(file, '{"name":"Bob"}');
    const keyed = await server.json(['insert', 'one', '@bob.json', '--record-key', 'bob']);
    expect(keyed.record.key).toBe('bob');
    const gone = await server.json(['delete', 'one', 'bob']);
    expect(gone).toEqual({ record: keyed.record, seq: keyed.record.seq + 1 });
    const missing = await server.ctl(['get', 'one', 'bob']);
    expect(missing).toMatchObject({
      code: 1,
      out: '',
      err: 'ctl: "one" has no record with the key "bob".\n',
    });
  });

  test('update applies operators by id or key; distinct lists values', async () => {
    const { record } = await server.json(['put', 'counters', 'a', '{"n":1,"tags":["x"]}']);
    const byKey = await server.json(['update', 'counters', '--key', 'a', '{"$inc":{"n":1}}']);
    expect(byKey.record).toMatchObject({ rev: 2, data: { n: 2 } });
    const update = '{"$push":{"tags":"y"}}';
    expect((await server.json(['update', 'counters', record.id, update])).record.rev).toBe(3);
    expect((await server.json(['update', 'counters', 'a', '-'], update)).record.rev).toBe(4);
    const late = await server.ctl(['update', 'counters', 'a', update, '--if-rev', '1']);
    expect([late.code, late.out]).toEqual([1, '']);
    const plain = await server.ctl(['update', 'counters', 'a', '{"n":5}']);
    expect([plain.code, plain.err.includes('ctl db put')]).toEqual([2, true]);
    const unknown = await server.ctl(['update', 'counters', 'a', '{"$incr":{"n":1}}']);
    expect(unknown.err).toContain('did you mean "$inc"');
    expect(await server.json(['distinct', 'counters', 'tags'])).toEqual({ values: ['x', 'y'] });
    expect((await server.ctl(['distinct', 'counters', 'n', 'n>1'])).out).toBe('2\n');
    const shown = await server.json(['find', 'counters', '--exclude', 'tags']);
    expect(shown.records[0].data).toEqual({ n: 2 });
    const create = ['index', 'create', 'counters', 'name', '--ci', '--where', 'n>1'];
    expect((await server.json(create)).index).toMatchObject({ collation: 'ci', state: 'ready' });
  });

  test('a revision guards against others, a request id against repetition', async () => {
    await server.json(['put', 'guard', 'k', '{"n":1}', '--if-rev', '0']);
    const late = await server.ctl(['put', 'guard', 'k', '{"n":2}', '--if-rev', '7', '--json']);
    expect([late.code, late.out]).toEqual([1, '']);
    expect(JSON.parse(late.err).error).toMatchObject({ code: 'REV_MISMATCH' });
    const args = ['insert', 'guard', '{"n":3}', '--request-id', 'once'];
    const [first, second] = [await server.json(args), await server.json(args)];
    expect(second.record.id).toBe(first.record.id);
  });

  test('bad input is reported in one line, with exit code 2', async () => {
    const cases: [string[], string, string?][] = [
      [['put', 'one', 'k', '[1]'], 'data must be a JSON object such as {"name":"Ada"}.'],
      [
        ['put', 'one', 'k', '{a'],
        "data is not JSON: Expected property name or '}' in JSON at position 1. " +
          `Put single quotes around it, as in '{"name":"Ada"}'.`,
      ],
      [['put', 'one', 'k'], 'stdin is empty. Give it JSON.', ''],
      [['put', 'one', 'k', ''], 'data is empty. Give it JSON.'],
      [
        ['put', 'one', 'k', '{}', '--if-rev', 'x'],
        '--if-rev must be a whole number, 0 or more, not "x".',
      ],
      [['put', 'one', 'k', '{}', '--ttl', '5'], '--ttl must be a duration such as'],
      [['find', 'one', 'age'], '"age" is not a condition'],
      [['find', 'one', '--filter', '5'], '--filter must be a JSON object'],
      [['aggregate', 'one', '--compute', 'most(age)'], '"most(age)" is not an aggregate'],
      [['watch'], 'Name a collection to watch, or --database for all of them.'],
      [['find', 'one', '--url', 'http://x'], '"http://x" is not a database address'],
      [['backup'], "required option '--out <file>' not specified"],
      [['verify'], 'Name what to check: --data DIR or --backup FILE.'],
      [
        ['keys', 'create', '--keys-file', 'k.yaml', '--scope', 'x'],
        '--scope must be collections:access',
      ],
    ];
    for (const [args, message, input] of cases) {
      const ended = await server.ctl(args, { input: input ?? '' });
      expect([ended.code, ended.out], args.join(' ')).toEqual([2, '']);
      expect(ended.err.split('\n')[0]).toContain(`ctl: ${message}`);
    }
  });

  test('what the server refuses is exit code 1, with its reason under --json', async () => {
    const bad = await server.ctl([
      'find',
      'one',
      '--filter',
      '{"field":"a","op":"near"}',
      '--json',
    ]);
    expect([bad.code, bad.out]).toEqual([1, '']);
    expect(JSON.parse(bad.err).error.code).toBe('BAD_FILTER');
    const name = await server.ctl(['find', '9lives']);
    expect(name.code).toBe(1);
    expect(name.err).toContain('cannot name a collection');
  });
});

describe('tables', () => {
  beforeAll(async () => {
    const people = [
      { key: 'ada', data: { name: 'Ada Lovelace', age: 36, city: 'London', born: '1815-12-10' } },
      {
        key: 'grace',
        data: { name: 'Grace Hopper', age: 85, city: 'Arlington', tags: ['navy', 'cobol'] },
      },
      {
        key: 'alan',
        data: {
          name: 'Alan Turing',
          age: 41,
          city: 'London',
          notes: 'On computable numbers, with an application to the Entscheidungsproblem',
        },
      },
    ];
    await server.json(['import', 'people'], people.map((line) => JSON.stringify(line)).join('\n'));
  });

  test('find at 80 and at 140 columns', async () => {
    const args = ['find', 'people', '--order-by', '-age'];
    const narrow = await server.ctl(args, { env: { COLUMNS: '80' } });
    expect(narrow.out).toBe(
      `
KEY    REV  name          age  city       tags              notes
grace    1  Grace Hopper   85  Arlington  ["navy","cobol"]
alan     1  Alan Turing    41  London                       On computable numbe…
ada      1  Ada Lovelace   36  London
one more field: born (choose with --fields, or see all with --json)
3 records
`.slice(1),
    );
    const wide = await server.ctl(args, { env: { COLUMNS: '140' } });
    expect(wide.out).toBe(
      `
KEY    REV  name          age  city       tags              notes                                                                 born
grace    1  Grace Hopper   85  Arlington  ["navy","cobol"]
alan     1  Alan Turing    41  London                       On computable numbers, with an application to the Entscheidungsprob…
ada      1  Ada Lovelace   36  London                                                                                             1815-12-10
3 records
`.slice(1),
    );
  });

  test('conditions, fields, pages, counts and plans', async () => {
    const found = await server.ctl(['find', 'people', 'city=London', 'age>36', '--fields', 'name']);
    expect(found.out).toBe('KEY   REV  name\nalan    1  Alan Turing\n1 record\n');
    const page = await server.json(['find', 'people', '--order-by', 'age', '--limit', '2']);
    expect(page.records.map(({ key }: { key: string }) => key)).toEqual(['ada', 'alan']);
    const next = await server.json([
      'find',
      'people',
      '--order-by',
      'age',
      '--cursor',
      page.next_cursor,
    ]);
    expect([next.records.length, next.next_cursor]).toEqual([1, '']);
    expect((await server.ctl(['find', 'people', 'name^=A', '--count'])).out).toBe('2\n');
    expect(await server.json(['find', 'people', '--count'])).toEqual({ count: 3 });
    const all = await server.json(['find', 'people', '--all', '--explain']);
    expect(all.records).toHaveLength(3);
    const explained = await server.ctl(['find', 'people', 'age=1', '--explain']);
    expect(explained.out).toMatch(/^0 records\nPlan: full scan, 3 rows read/);
    const or = await server.json(['find', 'people', '(age<40 or age>80) tags!?']);
    expect(or.records.map(({ key }: { key: string }) => key)).toEqual(['ada']);
  });

  test('aggregate', async () => {
    const args = ['aggregate', 'people', '--group-by', 'city', '--order-by', '-count'];
    const table = await server.ctl([...args, '--compute', 'oldest=max(age)', 'avg(age)']);
    expect(table.out).toBe(
      `
city       count  oldest  avg_age
London         2      41     38.5
Arlington      1      85       85
2 groups
`.slice(1),
    );
    const json = await server.json([...args, '--having', 'count>1']);
    expect(json.groups).toEqual([{ key: { city: 'London' }, count: 2, values: {} }]);
    expect((await server.ctl(['aggregate', 'people', 'age>99'])).out).toBe('count\n    0\n');
    const unknown = await server.ctl(['aggregate', 'peopel', '--group-by', 'city']);
    expect([unknown.code, unknown.out]).toEqual([1, '']);
    expect(unknown.err).toMatch(/"peopel".*people/s);
  });

  test('status', async () => {
    const { code, out } = await server.ctl(['status'], { env: { COLUMNS: '80' } });
    expect(code).toBe(0);
    expect(out).toMatch(
      /^server +unix:.*\nrole +leader \(leading\)\nepoch +1\ncommit +\d+; log from 1\n/,
    );
    expect(out).toMatch(/\nCOLLECTION +RECORDS +TTL +INDEXES\n(.*\n)*people +3\n/);
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    const json = await server.json(['status']);
    expect(json).toMatchObject({ role: 'leader', durability: 'full', followers: [], min_acks: 0 });
    expect(json.collections).toContainEqual({ name: 'people', records: 3, indexes: [] });
  });
});

describe('transactions', () => {
  test('all operations or none', async () => {
    const operations = [
      { op: 'insert', collection: 'tx', key: 'a', data: { n: 1 } },
      { op: 'upsert', collection: 'tx', key: 'b', data: { n: 2 } },
      { op: 'merge', collection: 'tx', key: 'a', data: { m: 1 } },
      { op: 'update', collection: 'tx', key: 'a', update: { $inc: { n: 4 } } },
      { op: 'get', collection: 'tx', key: 'a' },
      { op: 'get', collection: 'tx', key: 'none' },
    ];
    const done = await server.json(['tx'], JSON.stringify(operations));
    expect(done).toMatchObject({
      operations: 4,
      results: [
        { op: 'insert', record: { key: 'a' } },
        { op: 'upsert', created: true },
        { op: 'merge', record: { data: { n: 1, m: 1 } } },
        { op: 'update', record: { data: { n: 5, m: 1 } } },
        { op: 'get', record: { data: { n: 5, m: 1 } } },
        { op: 'get', record: null },
      ],
    });
    const file = join(server.folder, 'ops.ndjson');
    writeFileSync(
      file,
      '{"op":"delete","collection":"tx","key":"a"}\n{"op":"insert","collection":"tx","key":"b","data":{}}\n',
    );
    const failed = await server.ctl(['tx', file]);
    expect([failed.code, failed.out]).toEqual([1, '']);
    expect(failed.err).toMatch(
      /^ctl: operation 2 \(insert tx\): .*key "b".* Nothing was written\.\n$/,
    );
    expect(await server.json(['find', 'tx', '--count'])).toEqual({ count: 2 });
    const good = await server.ctl(['tx'], { input: '{"op":"delete","collection":"tx","key":"a"}' });
    expect(good.out).toMatch(/^delete tx a rev 1\nCommitted 1 write as commit \d+\.\n$/);
  });
});

describe('import and export', () => {
  test('what was exported can be imported again and again', async () => {
    const lines = Array.from({ length: 300 }, (_, n) =>
      JSON.stringify({ key: `k${n % 250}`, data: { n } }),
    );
    const first = await server.ctl(['import', 'bulk', '-'], { input: lines.join('\n') });
    expect(first).toMatchObject({ code: 0, err: '' });
    expect(first.out).toMatch(/^Imported 300 records in .*: 250 new, 50 replaced\.\n$/);
    // Two lines with one key: the later one counts.
    expect((await server.json(['get', 'bulk', 'k10'])).record.data).toEqual({ n: 260 });
    await server.json(['insert', 'bulk', '{"plain":true}']);
    const file = join(server.folder, 'bulk.ndjson');
    const out = await server.ctl(['export', 'bulk', '--out', file]);
    expect(out.out).toMatch(/^Exported 251 records to .*bulk\.ndjson in /);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const piped = await server.ctl(['export', 'bulk']);
    expect(piped.out).toBe(readFileSync(file, 'utf8'));
    expect(await server.json(['import', 'copy', file])).toMatchObject({
      created: 251,
      replaced: 0,
    });
    expect(await server.json(['import', 'copy', file])).toMatchObject({
      created: 0,
      replaced: 251,
    });
    const some = await server.ctl(['export', 'bulk', 'n=260..262', '--documents']);
    expect(some.out).toBe('{"n":260}\n{"n":261}\n{"n":262}\n');
    expect(readdirSync(server.folder).filter((name) => name.includes('unfinished'))).toEqual([]);
  });

  test('a bad line stops the import where it can go on, or is passed over', async () => {
    const input = '{"key":"a","data":{"n":1}}\nnonsense\n{"key":"c","data":{"n":3}}\n';
    const stopped = await server.ctl(['import', 'lines'], { input });
    expect([stopped.code, stopped.out]).toEqual([1, '']);
    expect(stopped.err).toBe(
      "ctl: stdin:2: is not JSON: Unexpected token 'o'. The lines before it are written. " +
        'Stopped at line 2. Resume with --start-line 2.\n',
    );
    const going = await server.ctl(['import', 'lines', '--keep-going', '--json'], { input });
    expect(going.code).toBe(1);
    expect(JSON.parse(going.out)).toMatchObject({ created: 1, replaced: 1, failed: [{ line: 2 }] });
    const rest = await server.ctl(['import', 'lines', '--start-line', '3', '--json'], { input });
    expect(JSON.parse(rest.out)).toMatchObject({ created: 0, replaced: 1 });
  });
});

describe('collections', () => {
  test('count, collection and index show what is there', async () => {
    await server.json(['put', 'shown', 'a', '{"n":1}']);
    await server.json(['put', 'shown', 'b', '{"n":2}']);
    expect(await server.json(['count', 'shown'])).toEqual({ count: 2 });
    expect((await server.ctl(['count', 'shown', 'n>1'])).out).toBe('1\n');
    const { collections } = await server.json(['collection', 'list']);
    expect(collections).toContainEqual({ name: 'shown', records: 2, indexes: [] });
    expect(await server.json(['collection', 'show', 'shown'])).toMatchObject({
      collection: { name: 'shown', records: 2 },
    });
    expect(await server.json(['index', 'list', 'shown'])).toEqual({ indexes: [] });
  });

  test('indexes of words and vectors, lookups and grouped expressions', async () => {
    const doc = (n: number, v: number[]) =>
      JSON.stringify({ n, v, title: `queue number ${n}`, at: `2026-10-2${n}T01:30:00Z`, by: 'x' });
    for (const n of [1, 2, 5]) await server.json(['put', 'ranked', `k${n}`, doc(n, [n, 1])]);
    await server.json(['put', 'makers', 'x', '{"name":"Xu"}']);
    const ok = async (...args: string[]) => {
      const done = await server.ctl(args);
      expect([done.code, done.err], args.join(' ')).toEqual([0, '']);
      return done.out;
    };
    const create = ['index', 'create', 'ranked'];
    expect(await ok(...create, 'v', '--vector', '--dims', '2', '--metric', 'l2')).toContain(
      'ready',
    );
    await ok(...create, 'title', '--search', '--language', 'en');
    await ok(...create, 'by', '--collation', 'ci', '--where', 'n>1');
    expect(await ok('index', 'list', 'ranked')).toMatch(
      /ranked +vector:v +no +no +vector 2 +ready\n.*search:title +no +no +search en +ready\n.*by +no +no +ci partial/,
    );
    const near = '{"field":"v","vector":[2,1],"k":2}';
    const nearest = await ok('find', 'ranked', '--near', near, '--fields', 'n', '--explain');
    expect(nearest).toMatch(/KEY +REV +SCORE +n\nk2 +1 +1 +2\nk1 +1 +0.5 +1\n2 records\n.*recall/s);
    expect(await ok('find', 'ranked', '--search', 'numbers -5', '--count')).toBe('2\n');
    const lookup = '{"from":"makers","local":"by","foreign":"$key","as":"maker"}';
    const joined = await server.json(['find', 'ranked', 'n=5', '--lookup', lookup]);
    expect(joined).toMatchObject({ records: [{ data: { maker: [{ name: 'Xu' }] } }] });
    const groups = 'by,week=dateTrunc(at,week,Europe/Berlin),size=bucket(n,0,2,9)';
    const grouped = await server.json(['aggregate', 'ranked', '--group-by', groups]);
    expect(grouped).toMatchObject({
      groups: [
        { key: { by: 'x', week: '2026-10-19T00:00:00+02:00', size: 0 }, count: 1 },
        { key: { by: 'x', week: '2026-10-19T00:00:00+02:00', size: 2 }, count: 2 },
      ],
    });
    const wrong = [...create, 'v', 'w', '--vector', '--dims', '2'];
    expect(await server.ctl(wrong)).toMatchObject({ code: 2 });
    const missing = await server.ctl(['index', 'drop', 'ranked', 'v']);
    expect(missing.err).toMatch(/no index "v". It has: vector:v; search:title; by/);
    expect(await ok('index', 'drop', 'ranked', 'vector:v')).toContain('dropped');
  });

  test('a collection that does not exist is an error with near names', async () => {
    await server.json(['put', 'shown', 'a', '{"n":1}']);
    const commands = ['find', 'count', 'export', 'collection show', 'index list'];
    for (const command of commands) {
      const { code, out, err } = await server.ctl([...command.split(' '), 'showm']);
      expect([code, out], command).toEqual([1, '']);
      expect(err).toBe('ctl: Collection "showm" does not exist; did you mean "shown"?\n');
    }
    const none = await server.ctl(['find', 'shown', 'n>9']);
    expect([none.code, none.out]).toEqual([0, '0 records\n']);
  });
});

test('migrate: resumes after SIGKILL, and names the record of a failure', async () => {
  let count = 0;
  // Modules are loaded once: each version has a file of its own.
  const argsFor = (text: string) => {
    const file = join(server.folder, `moved${count++}.mjs`);
    writeFileSync(file, text);
    return ['migrate', 'moved', '--module', file, '--batch', '50'];
  };
  const moduleOf = (up: string, more = '') =>
    argsFor(`export const migrations = [{version: 1, up(doc) {${up}}}${more}];\n`);
  const toFull = 'doc.full = doc.first + " " + doc.last; delete doc.first; delete doc.last;';
  const lines = Array.from({ length: 400 }, (_, n) =>
    JSON.stringify({ key: `p${n}`, data: { first: 'F', last: `L${n}`, n } }),
  );
  writeFileSync(join(server.folder, 'moved.ndjson'), lines.join('\n'));
  await server.json(['import', 'moved', join(server.folder, 'moved.ndjson')]);
  const killing = moduleOf(`if (doc.n === 170) process.kill(process.pid, 'SIGKILL'); ${toFull}`);
  const killed = await startCtl(['db', ...killing, '--url', server.url('socket')]).ended;
  expect(killed.code).not.toBe(0);
  expect(await server.json(['count', 'moved', 'full?'])).toEqual({ count: 150 });
  const failed = await server.ctl(moduleOf(`if (doc.n === 399) throw new Error('no'); ${toFull}`));
  expect(failed.code).toBe(1);
  expect(failed.err).toMatch(/Migration 1 of "moved" failed for the record [0-9A-Z]{26}: no/);
  const one = moduleOf(toFull);
  expect(await server.json(one)).toEqual({ collection: 'moved', version: 1, migrated: 50 });
  expect((await server.ctl(one)).out).toBe('"moved" is at version 1; 0 records migrated.\n');
  const two = moduleOf(toFull, ', {version: 2, up: (doc) => ({...doc, half: doc.n / 2})}');
  expect(await server.json(two)).toMatchObject({ version: 2, migrated: 400 });
  const { records } = await server.json(['find', 'moved', 'n=8']);
  expect(records).toMatchObject([{ rev: 3, data: { full: 'F L8', n: 8, half: 4 } }]);
  const gap = await server.ctl(moduleOf(toFull, ', {version: 3, up() {}}'));
  expect(gap.err).toMatch('must be unique and rise by one: 3 comes after 1');
  expect((await server.ctl(argsFor('export const x = 1;'))).code).toBe(2);
});

describe('watch', () => {
  test('lines for people, JSON for programs, an end after --max changes', async () => {
    await server.json(['put', 'feed', 'a', '{"n":1}']);
    const args = ['db', 'watch', 'feed', '--initial', '--max', '3', '--before'];
    const people = startCtl([...args, '--url', server.url('socket')]);
    const grpc = ['--url', server.url('grpc'), '--data', server.data];
    const programs = startCtl([...args, ...grpc, '--json']);
    await Promise.all([people.says('up to date'), programs.says('INITIAL_END')]);
    await server.json(['put', 'feed', 'a', '{"n":2}']);
    await server.json(['delete', 'feed', 'a']);
    const [shown, reported] = await Promise.all([people.ended, programs.ended]);
    expect(shown).toMatchObject({ code: 0, err: '' });
    expect(shown.out).toMatch(
      /^ +insert +feed\/a +rev 1 +\{"n":1\}\n-- up to date; changes follow --\n[\d:]{8} +update +feed\/a +rev 2 +\{"n":2\}\n +was +\{"n":1\}\n[\d:]{8} +delete +feed\/a +rev 2\n +was +\{"n":2\}\n$/,
    );
    const messages = reported.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(messages.map(({ kind }) => kind)).toEqual([
      'WATCH_KIND_INITIAL',
      'WATCH_KIND_INITIAL_END',
      'WATCH_KIND_CHANGES',
      'WATCH_KIND_CHANGES',
    ]);
    expect(messages[3].changes[0]).toMatchObject({
      op: 'CHANGE_OP_DELETE',
      record: { key: 'a', rev: 2 },
      before: { data: { n: 2 } },
    });
    const token = messages[2].resume_token;
    const again = await server.ctl(['watch', 'feed', '--resume', token, '--max', '1', '--json']);
    expect(JSON.parse(again.out)).toMatchObject({ changes: [{ op: 'CHANGE_OP_DELETE' }] });
  });

  test('Ctrl-C ends it with 130, and a reader that goes away ends it too', async () => {
    const { child, ended, says } = startCtl([
      'db',
      'watch',
      'feed',
      '--initial',
      '--url',
      server.url('socket'),
    ]);
    await says('up to date');
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, err: '' });
  });
});

describe('shell', () => {
  test('reads a script and ends with its first mistake', async () => {
    const input = `
# people of the shell
put folk ada {"name": "Ada",
  "age": 36}
put folk "bob b" '{"name": "Bob"}' --json
find folk age>30 --fields name
get folk nobody
put folk never {}
`;
    const { code, out, err } = await server.ctl(['shell'], { input });
    expect(code).toBe(1);
    expect(out).toMatch(
      /key +ada(.|\n)*"key": "bob b"(.|\n)*\nKEY +REV +name\nada +1 +Ada\n1 record\n$/,
    );
    expect(err).toBe('ctl: "folk" has no record with the key "nobody".\nctl: stopped at line 7\n');
    expect(await server.json(['find', 'folk', '--count'])).toEqual({ count: 2 });
  });

  test('exit leaves, and an open bracket at the end is a mistake', async () => {
    const left = await server.ctl(['shell'], { input: 'exit\nget folk nobody\n' });
    expect(left).toMatchObject({ code: 0, out: '', err: '' });
    const open = await server.ctl(['shell'], { input: 'put folk x {"a":\n' });
    expect([open.code, open.err]).toEqual([
      2,
      'ctl: The input ends inside a bracket or a quote. Close it.\n',
    ]);
  });
});

describe('without a server', () => {
  test('errors are JSON alone also over TLS to an address without a name', async () => {
    const hangsUp = createServer((socket) => socket.destroy());
    await once(hangsUp.listen(0, '127.0.0.1'), 'listening');
    const { port } = hangsUp.address() as AddressInfo;
    const url = `grpcs://127.0.0.1:${port}`;
    const { code, err } = await ctl(['db', 'status', '--url', url, '--timeout', '2s', '--json']);
    hangsUp.close();
    expect([code, JSON.parse(err)]).toMatchObject([1, { error: { message: expect.any(String) } }]);
  });

  test('the error says where it looked and how to start one', async () => {
    const { code, out, err } = await ctl(['db', 'find', 'x', '--url', 'grpc://127.0.0.1:1']);
    expect([code, out]).toEqual([1, '']);
    expect(err).toBe(
      'ctl: no database answers at grpc://127.0.0.1:1 (nothing listens there). ' +
        'Start one with `ctl db serve` or `ctl up`, or name another with --url.\n',
    );
    const json = await ctl(['db', 'status', '--json', '--data', '/nonexistent/x']);
    expect(json.code).toBe(1);
    const { error } = JSON.parse(json.err);
    expect(error.code).toBe('UNAVAILABLE');
    expect(error.message).toContain(
      'no database answers at unix:/nonexistent/x/db.sock (no such socket). Start',
    );
  });
});
