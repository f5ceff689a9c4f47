import { expect, test } from 'vitest';
import { differences, valueAt, withField, withValue, writable } from './config-draft.js';

const config = {
  name: 'mail',
  version: 3,
  callback: { url: 'http://a/run' },
  retry: { max_attempts: 5, retry_statuses: [409] },
};

test('withValue: sets and removes by path', () => {
  expect(withValue(config, 'retry.max_attempts', 7)).toMatchObject({
    retry: { max_attempts: 7, retry_statuses: [409] },
  });
  expect(withValue({}, 'limits.max_pending', 3)).toEqual({ limits: { max_pending: 3 } });
  expect(withValue({ a: { b: 1 } }, 'a.b', undefined)).toEqual({ a: {} });
  expect(valueAt(config, 'retry.max_attempts')).toBe(5);
  expect(valueAt(config, 'limits.max_pending')).toBeUndefined();
});

test('writable: leaves out what the server sets', () => {
  expect(Object.keys(writable(config))).toEqual(['callback', 'retry']);
});

test('differences: every changed value with its path', () => {
  const after = { ...config, version: 4, retry: { max_attempts: 5 }, limits: { max_pending: 9 } };
  expect(differences(config, after)).toEqual([
    { path: 'retry.retry_statuses', before: '[409]', after: 'not set' },
    { path: 'limits.max_pending', before: 'not set', after: '9' },
  ]);
  expect(differences(config, { ...config, version: 9 })).toEqual([]);
});

test('withField: a pull queue has no address, and gets one back with another protocol', () => {
  const pull = withField({ callback: { url: '' } }, 'callback.protocol', 'pull');
  expect(pull).toEqual({ callback: { protocol: 'pull' } });
  expect(withField(pull, 'callback.protocol', undefined)).toEqual({ callback: { url: '' } });
  expect(withField(config, 'callback.protocol', 'grpc')).toMatchObject({
    callback: { url: 'http://a/run', protocol: 'grpc' },
  });
});
