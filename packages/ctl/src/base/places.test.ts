import * as daemon from '@millrace/daemon/config';
import { expect, test } from 'vitest';
import { addressFile, configFile, readOnlyTokenFile, tokenFile } from './places.js';
import { dataDirectory } from './data-directory.js';

test('the command line looks where the daemon puts things', () => {
  expect(addressFile('/data')).toBe(daemon.addressFile('/data'));
  expect(tokenFile('/data')).toBe(daemon.tokenFile('/data'));
  expect(readOnlyTokenFile('/data')).toBe(daemon.readOnlyTokenFile('/data'));
});

test.for([
  { HOME: '/home/ada' },
  { HOME: '/home/ada', XDG_CONFIG_HOME: '/etc/ada', XDG_DATA_HOME: '/var/ada' },
  { HOME: '/home/ada', XDG_CONFIG_HOME: 'relative', XDG_DATA_HOME: 'relative' },
])('in the same directories: %j', (env) => {
  expect(configFile(env)).toBe(daemon.defaultConfigFile(env));
  expect(dataDirectory(undefined, env)).toBe(daemon.defaultDataDirectory(env));
});
