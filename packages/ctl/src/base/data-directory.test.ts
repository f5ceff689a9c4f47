import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { dataDirectory } from './data-directory.js';

test('the flag wins, then MILLRACE_DATA, then XDG_DATA_HOME, then the home directory', () => {
  const env = { MILLRACE_DATA_DIR: '/env', XDG_DATA_HOME: '/xdg', HOME: '/home/ada' };
  expect(dataDirectory('/flag', env)).toBe('/flag');
  expect(dataDirectory('data', env)).toBe(resolve('data'));
  expect(dataDirectory(undefined, env)).toBe('/env');
  expect(dataDirectory(undefined, { ...env, MILLRACE_DATA: '/new' })).toBe('/new');
  expect(dataDirectory(undefined, { ...env, MILLRACE_DATA_DIR: '' })).toBe('/xdg/millrace');
  expect(dataDirectory(undefined, { HOME: '/home/ada' })).toBe('/home/ada/.local/share/millrace');
});

test('a relative XDG_DATA_HOME is ignored, as its rules say', () => {
  expect(dataDirectory(undefined, { XDG_DATA_HOME: 'xdg', HOME: '/h' })).toBe(
    '/h/.local/share/millrace',
  );
});
