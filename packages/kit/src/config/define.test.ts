import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineConfig, flagsOf } from './define.js';
import { address, duration, path, secret } from './schema.js';

const definition = defineConfig({
  component: 'db',
  unknownKeys: 'refuse',
  schema: z.object({
    http: address()
      .prefault('127.0.0.1:8080')
      .meta({ description: 'Where the REST bridge listens', example: '0.0.0.0:8080' }),
    data: path()
      .default('./data')
      .meta({ aliases: ['dir'] }),
    follow_key: secret().default('x'),
    tls: z.boolean().default(false),
    log_retention: z.object({ age: duration().prefault('24h') }),
    names: z.array(z.string()).default(['a']),
    mode: z.enum(['fast', 'safe']).optional(),
    limit: z.int().optional(),
    collections: z.record(z.string(), z.int()).optional(),
  }),
});

test('every setting is a flag and a variable, with dots and underscores as dashes', () => {
  const flags = flagsOf(definition);
  expect(flags.map(({ syntax }) => syntax)).toEqual([
    '--config <path>',
    '--http <host:port>',
    '--data <path>',
    '--follow-key <secret>',
    '--tls [on|off]',
    '--log-retention-age <duration>',
    '--names <yaml>',
    '--mode <text>',
    '--limit <number>',
    '--collections <yaml>',
  ]);
  expect(flags.find(({ name }) => name === 'http')).toEqual({
    name: 'http',
    aliases: [],
    key: 'http',
    syntax: '--http <host:port>',
    kind: 'value',
    description: 'Where the REST bridge listens',
    default: '127.0.0.1:8080',
    example: '0.0.0.0:8080',
    variable: 'MILLRACE_DB_HTTP',
  });
  const byName = Object.fromEntries(flags.map((flag) => [flag.name, flag]));
  expect(byName['log-retention-age']).toMatchObject({
    key: 'log_retention.age',
    default: '24h',
    variable: 'MILLRACE_DB_LOG_RETENTION_AGE',
  });
  expect(byName['tls']).toMatchObject({ kind: 'switch', default: 'false' });
  expect(byName['names']).toMatchObject({ kind: 'list', default: '["a"]' });
  expect(byName['data']!.aliases).toEqual(['dir']);
  expect(byName['follow-key']!.default).toBeUndefined();
});

test.each([
  [z.object({ a_b: z.string(), a: z.object({ b: z.string() }) }), '--a-b'],
  [z.object({ config: z.string() }), '--config'],
  [z.object({ a: z.string(), b: z.string().meta({ aliases: ['a'] }) }), '--a'],
])('two settings that would share a flag are a bug', (schema, flag) => {
  expect(() => defineConfig({ component: 'db', schema, unknownKeys: 'refuse' })).toThrow(flag);
});
