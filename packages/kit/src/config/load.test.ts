import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { UsageError } from '../base/errors.js';
import { address, byteSize, count, duration, path, secret } from './schema.js';
import { defineConfig } from './define.js';
import { loadConfig, type ConfigInputs } from './load.js';

const schema = z.object({
  listen: address().prefault('127.0.0.1:8081').meta({ description: 'Where the API listens' }),
  data: path()
    .default('./data')
    .meta({ aliases: ['dir'] }),
  storage: z.string().default('embedded'),
  tokens_file: path().optional(),
  follow_key: secret().optional(),
  savings: z.boolean().default(true),
  limits: z.object({
    max_in_flight: z.int().min(1).default(64),
    ratio: z.number().gt(0).lte(1).default(0.7),
    retry: duration({ min: 1000 }).prefault('15m'),
    log_bytes: byteSize().prefault('1GiB'),
  }),
  tokens: z.object({ warn: count().prefault('200k'), mode: z.enum(['none', 'group']).optional() }),
  callback_allowlist: z
    .array(
      z.object({
        host: z.string(),
        port: z.union([z.int().min(1).max(65_535), z.literal('*')]).default('*'),
        ca_file: path().optional(),
      }),
    )
    .default([]),
  collections: z.record(z.string(), z.object({ ttl_ms: z.int().min(0).default(0) })).default({}),
  tls: z.object({ cert: path(), key: path() }).optional(),
  old: z.string().optional().meta({ deprecation: 'use listen' }),
});
const queue = defineConfig({ component: 'queue', schema, unknownKeys: 'refuse' });
const daemon = defineConfig({ component: 'daemon', schema, unknownKeys: 'warn' });

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-config-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function load(yaml: string, inputs: Partial<ConfigInputs> = {}, definition = queue) {
  writeFileSync(join(directory, 'queue.yaml'), yaml);
  const flags = { config: 'queue.yaml', ...inputs.flags };
  return loadConfig(definition, { environment: {}, cwd: directory, ...inputs, flags });
}

function mistakeIn(yaml: string, inputs: Partial<ConfigInputs> = {}, definition = queue): string {
  try {
    load(yaml, inputs, definition);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return (error as UsageError).message;
  }
  throw new Error('expected a mistake');
}

describe('values', () => {
  test('without file, flags and variables every default holds', () => {
    const { values, file } = loadConfig(queue, { environment: {}, cwd: directory });
    expect(file).toBeUndefined();
    expect(values).toMatchObject({
      listen: { host: '127.0.0.1', port: 8081 },
      data: join(directory, 'data'),
      savings: true,
      limits: { max_in_flight: 64, ratio: 0.7, retry: 900_000, log_bytes: 2 ** 30 },
      tokens: { warn: 200_000 },
      callback_allowlist: [],
    });
    expect(values.tls).toBeUndefined();
  });

  test('a flag beats a variable, a variable beats the file, the file beats the default', () => {
    const yaml = 'limits: {max_in_flight: 2, ratio: 0.2, retry: 2s}\n';
    const environment = {
      MILLRACE_QUEUE_LIMITS_MAX_IN_FLIGHT: '3',
      MILLRACE_QUEUE_LIMITS_RATIO: '0.3',
    };
    const config = load(yaml, { environment, flags: { 'limits-max-in-flight': '4' } });
    expect(config.values.limits).toEqual({
      max_in_flight: 4,
      ratio: 0.3,
      retry: 2000,
      log_bytes: 2 ** 30,
    });
    const sources = config.entries
      .filter(({ key }) => key.startsWith('limits.'))
      .map(({ key, value, source }) => [key, value, source]);
    expect(sources).toEqual([
      ['limits.max_in_flight', 4, '--limits-max-in-flight'],
      ['limits.ratio', 0.3, '$MILLRACE_QUEUE_LIMITS_RATIO'],
      ['limits.retry', '2s', 'queue.yaml:1'],
      ['limits.log_bytes', '1GiB', 'default'],
    ]);
    expect(config.sourceOf('limits.retry')).toEqual({
      kind: 'file',
      file: 'queue.yaml',
      line: 1,
      column: 40,
    });
  });

  test('flags are also taken in the camel case that command-line parsers use', () => {
    const { values } = load('', { flags: { limitsMaxInFlight: '9', json: true, dir: 'x' } });
    expect(values.limits.max_in_flight).toBe(9);
    expect(values.data).toBe(join(directory, 'x'));
  });

  test('dotted keys and nested maps are the same thing and may be mixed', () => {
    const { values, entries } = load(
      'tokens.warn: 300k\nlimits:\n  ratio: 0.5\nlimits.max_in_flight: 7\n',
    );
    expect(values.tokens.warn).toBe(300_000);
    expect(values.limits).toMatchObject({ ratio: 0.5, max_in_flight: 7 });
    expect(entries.find(({ key }) => key === 'limits.max_in_flight')?.source).toBe('queue.yaml:4');
  });

  test('a dot in a key of a map of its own is part of the name', () => {
    const { values } = load('collections:\n  people.old: {ttl_ms: 5}\n');
    expect(values.collections).toEqual({ 'people.old': { ttl_ms: 5 } });
  });

  test('relative paths start at the file they stand in, or at the working directory', () => {
    mkdirSync(join(directory, 'etc'));
    writeFileSync(
      join(directory, 'etc/q.yaml'),
      'data: ../store\ntokens_file: ~/t.yaml\ncallback_allowlist: [{host: a, ca_file: ca.pem}]\n',
    );
    const environment = { HOME: '/home/ann', MILLRACE_QUEUE_TLS_CERT: 'c.pem' };
    const flags = { config: 'etc/q.yaml', 'tls-key': './k.pem' };
    const { values } = loadConfig(queue, { environment, flags, cwd: directory });
    expect(values).toMatchObject({
      data: join(directory, 'store'),
      tokens_file: '/home/ann/t.yaml',
      callback_allowlist: [{ ca_file: join(directory, 'etc/ca.pem') }],
      tls: { cert: join(directory, 'c.pem'), key: join(directory, 'k.pem') },
    });
  });

  test('switches take the usual words in flags, variables and files', () => {
    expect(load('savings: off').values.savings).toBe(false);
    expect(load('savings: No').values.savings).toBe(false);
    expect(load('', { flags: { savings: false } }).values.savings).toBe(false);
    expect(load('', { flags: { savings: 'off' } }).values.savings).toBe(false);
    const environment = { MILLRACE_QUEUE_SAVINGS: '0' };
    expect(load('', { environment }).values.savings).toBe(false);
    expect(load('', { environment, flags: { savings: true } }).values.savings).toBe(true);
  });

  test('lists and maps can be given in a flag or a variable', () => {
    const flags = { 'callback-allowlist': ['{host: a, port: 80}', '{host: b}'] };
    expect(load('', { flags }).values.callback_allowlist).toEqual([
      { host: 'a', port: 80 },
      { host: 'b', port: '*' },
    ]);
    const environment = {
      MILLRACE_QUEUE_CALLBACK_ALLOWLIST: '[{host: c}]',
      MILLRACE_QUEUE_COLLECTIONS: '{people: {ttl_ms: 3}}',
    };
    const { values } = load('', { environment });
    expect(values.callback_allowlist).toEqual([{ host: 'c', port: '*' }]);
    expect(values.collections).toEqual({ people: { ttl_ms: 3 } });
  });

  test('a list or a map: a text without brackets is a list', () => {
    const names = z.array(z.string().regex(/^[A-Z_]+$/));
    const env = z.union([names, z.record(z.string(), z.string())]).default([]);
    const either = defineConfig({ component: 'x', schema: z.object({ env }), unknownKeys: 'warn' });
    const read = (text: string) =>
      loadConfig(either, { environment: {}, flags: { env: text } }).values.env;
    expect(read('HOME')).toEqual(['HOME']);
    expect(read('HOME, TERM')).toEqual(['HOME', 'TERM']);
    expect(read('[HOME]')).toEqual(['HOME']);
    expect(read('{HOME: /x}')).toEqual({ HOME: '/x' });
  });

  test('the daemon has no component in its variables', () => {
    const environment = { MILLRACE_TOKENS_WARN: '1M', MILLRACE_QUEUE_TOKENS_WARN: '2M' };
    expect(load('', { environment }, daemon).values.tokens.warn).toBe(1_000_000);
  });

  test('an empty variable counts as not set', () => {
    const environment = { MILLRACE_QUEUE_STORAGE: '' };
    expect(load('storage: x', { environment }).values.storage).toBe('x');
  });

  test.each(['', '\n', '# nothing yet\n', '---\n', '\uFEFF', 'limits:\n', 'limits:\n  # none\n'])(
    'a file with nothing in it, %j, leaves the defaults',
    (yaml) => {
      expect(load(yaml).values.limits.max_in_flight).toBe(64);
    },
  );

  test('a byte order mark and Windows line ends do no harm', () => {
    const config = load('\uFEFFstorage: x\r\nlimits:\r\n  max_in_flight: 3\r\n');
    expect(config.values).toMatchObject({ storage: 'x', limits: { max_in_flight: 3 } });
    expect(config.entries.find(({ key }) => key === 'limits.max_in_flight')?.source).toBe(
      'queue.yaml:3',
    );
  });
});

test('a variable may end with the line break of the file it was made from', () => {
  const environment = { MILLRACE_QUEUE_FOLLOW_KEY: 'hunter2\n', MILLRACE_QUEUE_STORAGE: '\n' };
  const config = load('', { environment });
  expect(config.values.follow_key).toBe('hunter2');
  expect(config.sourceOf('storage')).toEqual({ kind: 'default' });
});

describe('entries', () => {
  test('secrets are hidden wherever they came from, and passwords in URLs too', () => {
    const environment = { MILLRACE_QUEUE_FOLLOW_KEY: 'hunter2' };
    const config = load('storage: postgres://me:hunter2@db/x\n', { environment });
    expect(config.values.follow_key).toBe('hunter2');
    expect(JSON.stringify(config.entries)).not.toContain('hunter2');
    const shown = Object.fromEntries(config.entries.map(({ key, value }) => [key, value]));
    expect(shown['follow_key']).toBe('[hidden]');
    expect(shown['storage']).toBe('postgres://me:[hidden]@db/x');
    expect(shown['tokens_file']).toBeNull();
  });

  test('a check made later can still point to the line, flag or variable', () => {
    const config = load('storage: x\n', { flags: { listen: '0.0.0.0:1' } });
    expect(config.mistake('storage', 'is not reachable').message).toBe(
      'queue.yaml:1: storage is not reachable',
    );
    expect(config.mistake('listen', 'needs a token').message).toBe('--listen needs a token');
    expect(config.mistake('data', 'is full').message).toBe('data is full');
  });

  test('a deprecated key works and causes a warning', () => {
    const config = load('old: yes\n');
    expect(config.values.old).toBe('yes');
    expect(config.warnings).toEqual(['queue.yaml:1: old is deprecated: use listen']);
  });
});

describe('mistakes in a file', () => {
  test.each([
    [
      'limits:\n  max_in_flight: many\n',
      'queue.yaml:2: limits.max_in_flight must be a whole number of at least 1, not "many"',
    ],
    [
      'limits.max_in_flight: "12"\n',
      'queue.yaml:1: limits.max_in_flight must be a whole number of at least 1, not "12"',
    ],
    [
      'limits: {max_in_flight: 0}\n',
      'queue.yaml:1: limits.max_in_flight must be a whole number of at least 1, not 0',
    ],
    [
      'limits: {max_in_flight: 1.5}\n',
      'queue.yaml:1: limits.max_in_flight must be a whole number of at least 1, not 1.5',
    ],
    [
      'limits.ratio: 2',
      'queue.yaml:1: limits.ratio must be a number above 0 and of at most 1, not 2',
    ],
    [
      'limits.ratio: .nan',
      'queue.yaml:1: limits.ratio must be a number above 0 and of at most 1, not NaN',
    ],
    ['savings: maybe', 'queue.yaml:1: savings must be true or false, not "maybe"'],
    ['savings: "on"', 'queue.yaml:1: savings must be true or false, not "on"'],
    ['storage: 5', 'queue.yaml:1: storage must be text, not 5'],
    ['storage: [a]', 'queue.yaml:1: storage must be text, not a list'],
    ['storage:', 'queue.yaml:1: storage must be text, not empty'],
    ['data: ""', 'queue.yaml:1: data must be a path, not ""'],
    [
      'follow_key: 12345',
      'queue.yaml:1: follow_key must be text that is not empty, not this number',
    ],
    ['tokens.mode: x', 'queue.yaml:1: tokens.mode must be one of none or group, not "x"'],
    ['listen: 8081', 'queue.yaml:1: listen must be an address such as 127.0.0.1:8080, not 8081'],
    [
      'listen: localhost',
      'queue.yaml:1: listen must be an address such as 127.0.0.1:8080, not "localhost": the port is missing',
    ],
    [
      'limits.retry: 15',
      'queue.yaml:1: limits.retry must be a duration such as 500ms, 15m, 1h30m or 7d, at least 1s, not 15',
    ],
    [
      'limits.retry: "15"',
      'queue.yaml:1: limits.retry must be a duration such as 500ms, 15m, 1h30m or 7d, not "15" (add a unit: 15s or 15m)',
    ],
    [
      'limits.retry: 10ms',
      'queue.yaml:1: limits.retry must be a duration such as 500ms, 15m, 1h30m or 7d, at least 1s, not "10ms"',
    ],
    ['limits: 5', 'queue.yaml:1: limits must be a group of settings, not a single value'],
    [
      '# first\ncallback_allowlist:\n  - host: a\n  - host: b\n    port: 70000\n',
      'queue.yaml:5: callback_allowlist[1].port must be a whole number from 1 to 65535 or *, not 70000',
    ],
    [
      'callback_allowlist:\n  - {port: 80}\n',
      'queue.yaml:2: callback_allowlist[0].host is missing; it must be text',
    ],
    ['callback_allowlist: a', 'queue.yaml:1: callback_allowlist must be a list, not "a"'],
    [
      'callback_allowlist: mysql://u:hun/te@r2@h/d',
      'queue.yaml:1: callback_allowlist must be a list, not this text',
    ],
    [
      'collections:\n  people:\n    ttl_ms: -1\n',
      'queue.yaml:3: collections.people.ttl_ms must be a whole number of at least 0, not -1',
    ],
    ['collections.people: {}', 'queue.yaml:1: collections is not a group: write people below it'],
    [
      'tls.cert: a',
      'tls.key is missing; it must be a path; set it in the file, by --tls-key or by $MILLRACE_QUEUE_TLS_KEY',
    ],
    [
      'tokens.warn: 1\ntokens:\n  warn: 2\n',
      'queue.yaml:3: tokens.warn is given twice, here and in line 1; remove one',
    ],
    [
      'callback_allowlist:\n  - {host: a, prot: 1}\n',
      'queue.yaml:2: unknown key "callback_allowlist[0].prot"; did you mean "port"?',
    ],
    [
      'data: x\ntoken_file: y\n',
      'queue.yaml:2: unknown key "token_file"; did you mean "tokens_file"?',
    ],
    [
      'max_in_flight: 3',
      'queue.yaml:1: unknown key "max_in_flight"; did you mean "limits.max_in_flight"?',
    ],
    ['tokns: {warn: 3}', 'queue.yaml:1: unknown key "tokns"; did you mean "tokens"?'],
    ['limits.: 3', 'queue.yaml:1: unknown key "limits."; did you mean "limits"?'],
    ['zebra: 3', 'queue.yaml:1: unknown key "zebra"'],
    ['constructor: 3', 'queue.yaml:1: unknown key "constructor"'],
    ['- a\n- b\n', 'queue.yaml:1: must be a map of settings, not a list'],
    ['just text', 'queue.yaml:1: must be a map of settings, not a single value'],
  ])('%j', (yaml, expected) => {
    expect(mistakeIn(yaml)).toBe(expected);
  });

  test('a check across settings reports its own message', () => {
    const pair = defineConfig({
      component: 'db',
      unknownKeys: 'refuse',
      schema: z
        .object({
          low: z.int().default(1),
          high: z.int().default(2),
          tls: z.object({ cert: z.string().optional(), key: z.string().optional() }),
        })
        .refine(({ low, high }) => low <= high, { error: 'low is above high' })
        .refine(({ tls }) => !tls.cert === !tls.key, {
          error: 'needs both cert and key',
          path: ['tls'],
        }),
    });
    const inputs = { environment: {}, flags: { low: '9', 'tls-cert': 'x' } };
    expect(() => loadConfig(pair, inputs)).toThrow(
      new UsageError('the configuration: low is above high\ntls needs both cert and key'),
    );
  });

  test('all of them are reported at once, one line each', () => {
    const yaml = 'storage: 5\nsavings: 3\nzebra: 1\n';
    expect(mistakeIn(yaml, { flags: { listen: 'x' } }).split('\n')).toEqual([
      'queue.yaml:3: unknown key "zebra"',
      '--listen must be an address such as 127.0.0.1:8080, not "x": the port is missing',
      'queue.yaml:1: storage must be text, not 5',
      'queue.yaml:2: savings must be true or false, not 3',
    ]);
  });

  test('very many of them are cut short', () => {
    const yaml = Array.from({ length: 50 }, (_, i) => `zebra${i}: 1`).join('\n');
    const lines = mistakeIn(yaml).split('\n');
    expect(lines).toHaveLength(21);
    expect(lines[20]).toBe('and 30 more mistakes');
  });

  test('where unknown keys only warn, they are named and the rest is read', () => {
    const config = load(
      'storge: x\ncallback_allowlist: [{host: a, prot: 1}]\ntokens.wran: 1\n',
      {},
      daemon,
    );
    expect(config.values.callback_allowlist).toEqual([{ host: 'a', port: '*' }]);
    expect(config.warnings).toEqual([
      'queue.yaml:1: unknown key "storge"; did you mean "storage"?',
      'queue.yaml:3: unknown key "tokens.wran"; did you mean "tokens.warn"?',
      'queue.yaml:2: unknown key "callback_allowlist[0].prot"; did you mean "port"?',
    ]);
  });
});

describe('mistakes elsewhere', () => {
  test('a flag and a variable are called by their own names', () => {
    expect(mistakeIn('', { flags: { 'limits-max-in-flight': 'many' } })).toBe(
      '--limits-max-in-flight must be a whole number of at least 1, not "many"',
    );
    expect(mistakeIn('', { environment: { MILLRACE_QUEUE_SAVINGS: 'perhaps' } })).toBe(
      '$MILLRACE_QUEUE_SAVINGS must be true or false, not "perhaps"',
    );
    expect(mistakeIn('', { flags: { 'callback-allowlist': ['{host: 5}'] } })).toBe(
      '--callback-allowlist[0].host must be text, not 5',
    );
    expect(mistakeIn('', { flags: { collections: '{a' } })).toBe(
      '--collections must be a map, not "{a"',
    );
  });

  test('a near miss among the variables is a warning, any other variable is not', () => {
    const environment = {
      MILLRACE_QUEUE_LISTN: 'x',
      MILLRACE_QUEUE_URL: 'x',
      MILLRACE_LISTN: 'x',
      MILLRACE_DB_LISTN: 'x',
    };
    expect(load('', { environment }).warnings).toEqual([
      '$MILLRACE_QUEUE_LISTN is not used; did you mean $MILLRACE_QUEUE_LISTEN?',
    ]);
    expect(load('', { environment }, daemon).warnings).toEqual([
      '$MILLRACE_LISTN is not used; did you mean $MILLRACE_LISTEN?',
    ]);
  });

  test('a file named with --config must exist, the default one may not', () => {
    const inputs = { environment: {}, cwd: directory };
    expect(() => loadConfig(queue, { ...inputs, flags: { config: 'no.yaml' } })).toThrow(
      new UsageError('--config no.yaml: no such file'),
    );
    expect(loadConfig(queue, { ...inputs, defaultFile: 'no.yaml' }).file).toBeUndefined();
    writeFileSync(join(directory, 'yes.yaml'), 'storage: here');
    const config = loadConfig(queue, { ...inputs, defaultFile: 'yes.yaml' });
    expect([config.file, config.values.storage]).toEqual(['yes.yaml', 'here']);
    expect(() => loadConfig(queue, { ...inputs, flags: { config: true } })).toThrow(
      '--config needs the name of a file',
    );
  });
});

test('a variable cannot hold a bomb of aliases', () => {
  const environment = { MILLRACE_QUEUE_COLLECTIONS: '{a: &a {ttl_ms: 1}, b: *a}' };
  expect(mistakeIn('', { environment })).toContain('must be a map');
});
