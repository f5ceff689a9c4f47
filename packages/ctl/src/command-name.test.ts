import { expect, test } from 'vitest';
import { asTyped, commandName } from './command-name.js';

test.each([
  ['/usr/bin/ctl', {}, 'ctl'],
  ['/usr/bin/millrace', {}, 'millrace'],
  ['C:\\x/millrace.js', {}, 'millrace'],
  ['/p/node_modules/.bin/millrace', { npm_command: 'exec' }, 'npx millrace'],
])('command name: %s is shown as typed', (script, env, name) => {
  expect(commandName(script, env, '/')).toBe(name);
});

test('command name: in a clone it is bin/ctl', () => {
  expect(commandName('/x/bin/ctl', {}, process.cwd())).toBe('bin/ctl');
});

test('advice: names the command that npx runs, and nothing else', () => {
  const advice = 'Run `ctl up`, or: ctl db serve. The ctl of others is theirs. `ctl`';
  const npx = { npm_command: 'exec' };
  expect(asTyped(advice, '/p/node_modules/.bin/millrace', npx)).toBe(
    'Run `npx millrace up`, or: npx millrace db serve. The ctl of others is theirs. `ctl`',
  );
  expect(asTyped(advice, '/p/node_modules/.bin/millrace', {})).toBe(advice);
  expect(asTyped(advice, '/p/node_modules/.bin/vitest', npx)).toBe(advice);
});
