import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { scriptFrom } from '../../../../test/support/script.js';
import { UsageError } from './errors.js';
import { createLog, logLevelFrom, memoryLog, silentLog, type Log, type LogOptions } from './log.js';

const logModule = fileURLToPath(new URL('./log.ts', import.meta.url));

function recording(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLog({ level: 'debug', component: 'queue', destination, ...options });
  return { log, lines, records: () => lines.map((line) => JSON.parse(line)) };
}

test('a line is JSON with time, level, component, fields and message', () => {
  const { log, records } = recording();
  log.info({ queue: 'mail', depth: 3 }, 'claimed');
  const [record] = records();
  expect(record).toMatchObject({
    level: 'info',
    component: 'queue',
    pid: process.pid,
    queue: 'mail',
    depth: 3,
    msg: 'claimed',
  });
  expect(record.time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test('lines below the level are not written', () => {
  const { log, lines } = recording({ level: 'warn' });
  log.debug({}, 'no');
  log.info({}, 'no');
  log.warn({}, 'yes');
  expect(lines).toHaveLength(1);
});

test('a child carries its fields, without their secrets', () => {
  const { log, records } = recording();
  const child: Log = log.child({ request_id: 'r1', headers: { authorization: 'Bearer hunter2' } });
  child.child({ token: 'hunter2' }).info({}, 'served');
  expect(records()[0]).toMatchObject({
    request_id: 'r1',
    headers: { authorization: '[hidden]' },
    token: '[hidden]',
  });
});

test('an error is written with type, stack and causes, under whatever name it is logged', () => {
  const { log, records } = recording();
  const error = new Error('outer', { cause: new TypeError('inner, with Bearer abc123456') });
  log.error({ err: error }, 'failed');
  log.error({ error }, 'failed');
  const [asErr, asError] = records();
  for (const written of [asErr.err, asError.error]) {
    expect(written).toMatchObject({
      type: 'Error',
      message: 'outer',
      cause: { type: 'TypeError', message: 'inner, with Bearer [hidden]' },
    });
    expect(written.stack).toContain('log.test.ts');
  }
  expect(JSON.stringify(records())).not.toContain('abc123456');
});

test('secrets in a message, in a nested field and in a stack do not reach the destination', () => {
  const { log, lines } = recording();
  const secret = 'mr_s3cr3ts3cr3t';
  log.warn({ a: { b: { c: { password: secret } } }, err: new Error(secret) }, `got ${secret}`);
  expect(lines.join('')).not.toContain('s3cr3ts3cr3t');
});

test('fields that refer to themselves do not stop the logger', () => {
  const { log, records } = recording();
  const loop: Record<string, unknown> = { big: 1n };
  loop['self'] = loop;
  log.info({ loop }, 'round');
  expect(records()[0].msg).toBe('round');
});

test('a person gets readable lines, without secrets', () => {
  const { log, lines } = recording({ pretty: true });
  log.info({ queue: 'mail', token: 'hunter2' }, 'claimed');
  const text = lines.join('');
  expect(text).toContain('INFO: claimed');
  expect(text).toContain('queue: "mail"');
  expect(text).not.toContain('hunter2');
  expect(text).not.toContain('\u001B[');
});

test('MILLRACE_LOG sets the level, and a wrong one is refused', () => {
  expect(logLevelFrom({})).toBe('info');
  expect(logLevelFrom({ MILLRACE_LOG: '' }, 'warn')).toBe('warn');
  expect(logLevelFrom({ MILLRACE_LOG: 'DEBUG' })).toBe('debug');
  expect(() => logLevelFrom({ MILLRACE_LOG: 'loud' })).toThrow(UsageError);
  expect(() => logLevelFrom({ MILLRACE_LOG: 'loud' })).toThrow(
    '$MILLRACE_LOG must be one of trace, debug, info, warn, error, fatal, silent, not "loud"',
  );
});

test('a memory log keeps level, message and the fields of its parents', () => {
  const log = memoryLog();
  log.child({ queue: 'mail' }).child({ task: 1 }).warn({ task: 2 }, 'late');
  expect(log.lines).toEqual([
    { level: 'warn', message: 'late', fields: { queue: 'mail', task: 2 } },
  ]);
});

test('the silent log and its children take every call', () => {
  const child = silentLog.child({});
  for (const level of ['debug', 'info', 'warn', 'error'] as const) {
    expect(child[level]({}, 'x')).toBeUndefined();
  }
});

const ways = [
  ['by process.exit', 'process.exit(0)', 0],
  ['by an exception', 'throw new Error("boom")', 1],
  ['by running out of work', '', 0],
] as const;

test.each(ways)(
  'lines written just before the end %s are not lost',
  async (_way, ending, status) => {
    const child = await runScript(`
    const log = createLog({ level: 'info', component: 'queue' });
    for (let i = 0; i < 5000; i++) log.info({ i }, 'line');
    ${ending}
  `);
    const lines = child.stderr.split('\n').filter((line) => line.startsWith('{'));
    expect(child.status).toBe(status);
    expect(lines).toHaveLength(5000);
    expect(JSON.parse(lines[4999]!)).toMatchObject({ i: 4999, component: 'queue' });
    expect(child.stdout).toBe('');
  },
);

test('pino-pretty is loaded for a person only', async () => {
  const child = await runScript(`
    const { createRequire } = await import('node:module');
    const { cache } = createRequire(import.meta.url);
    const isLoaded = () => Object.keys(cache).some((file) => file.includes('pino-pretty'));
    createLog({ level: 'info', component: 'queue' });
    console.log(isLoaded());
    createLog({ level: 'info', component: 'queue', pretty: true });
    console.log(isLoaded());
  `);
  expect(child.stdout).toBe('false\ntrue\n');
});

async function runScript(body: string) {
  const input = await scriptFrom(`
    import { createLog } from ${JSON.stringify(logModule)};
    ${body}
  `);
  return spawnSync(process.execPath, ['--input-type=module', '-'], {
    input,
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('.', import.meta.url)),
  });
}
