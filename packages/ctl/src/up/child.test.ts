import { afterEach, expect, test } from 'vitest';
import { startChild, type Child } from './child.js';

const started: Child[] = [];
afterEach(async () => {
  for (const child of started.splice(0)) {
    child.kill('SIGKILL');
    await child.ended;
  }
});

/** A process that runs this script. */
function run(script: string, listeners: readonly string[] = ['http']) {
  const logs: string[] = [];
  const child = startChild(['-e', script], process.env, {
    listeners,
    onLog: (line) => logs.push(line),
  });
  started.push(child);
  return { child, logs };
}

const listening = (listener: string) =>
  `console.log(JSON.stringify({event:'listening',component:'x',listener:'${listener}',url:'u:${listener}'}));`;
const stay = 'setInterval(() => {}, 1000);';

test('it is ready when all that it was to announce is announced, in whatever order', async () => {
  const script = `console.error('a log'); ${listening('b')} ${listening('a')} ${stay}`;
  const { child, logs } = run(script, ['a', 'b']);
  expect(await child.ready).toEqual([
    { listener: 'b', url: 'u:b' },
    { listener: 'a', url: 'u:a' },
  ]);
  await expect.poll(() => logs).toEqual(['a log']);
});

test.for([
  ['console.error("ctl: the port is taken"); process.exit(2)', 'the port is taken (exit code 2)'],
  [
    `console.error(JSON.stringify({level:'error',msg:'it broke',err:{message:'disk full'}}));
     console.error(JSON.stringify({level:'info',msg:'drained'})); process.exit(1)`,
    'it broke: disk full (exit code 1)',
  ],
  ['process.exit(7)', 'exit code 7'],
  ['process.kill(process.pid, "SIGKILL")', 'SIGKILL'],
] as const)('one that ends before it is ready says why: %s', async ([script, reason]) => {
  const { child } = run(script);
  await expect(child.ready).rejects.toMatchObject({ code: 'PART_FAILED', detail: reason });
});

test('it hears signals, and a channel shows it that we are there', async () => {
  const script = `process.on('SIGTERM', () => process.exit(process.connected ? 3 : 4));
    ${listening('http')} ${stay}`;
  const { child } = run(script);
  await child.ready;
  child.kill('SIGTERM');
  expect(await child.ended).toMatchObject({ code: 3, signal: null });
});

test('it is in a group of its own, so that Ctrl-C reaches it through us alone', async () => {
  const { child, logs } = run(`${listening('http')} ${stay}`);
  await child.ready;
  // A group bears the id of its leader.
  expect(process.kill(-child.pid!, 0)).toBe(true);
  expect(logs).toEqual([]);
});
