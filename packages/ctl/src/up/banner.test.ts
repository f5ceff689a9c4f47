import { expect, test } from 'vitest';
import { commandName } from './banner.js';

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
