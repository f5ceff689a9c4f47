import { expect, test } from 'vitest';
import { handlersOf, machineLabels, missingLabels, parseLabels } from './received-task.js';

test('labels: a daemon knows its system and machine; settings add and override', () => {
  const labels = machineLabels({ gpu: 'true', host: 'big' });
  expect(labels).toMatchObject({ arch: process.arch, gpu: 'true', host: 'big' });
  expect(labels['os']).toBe(process.platform === 'darwin' ? 'macos' : process.platform);
});

test('labels: handlers name the label, and the label with its value', () => {
  expect(handlersOf({ gpu: 'true', os: 'linux' })).toEqual([
    'agent',
    'agent.gpu',
    'agent.gpu:true',
    'agent.os',
    'agent.os:linux',
  ]);
  // A value that a handler reference cannot have is checked by the header alone.
  expect(handlersOf({ room: 'two words' })).toEqual(['agent', 'agent.room']);
});

test('labels: a header lists pairs', () => {
  expect(parseLabels('os=linux, gpu=true')).toEqual({ os: 'linux', gpu: 'true' });
  expect(parseLabels('')).toEqual({});
  expect(parseLabels('gpu')).toBeUndefined();
  expect(parseLabels('=x')).toBeUndefined();
});

test('labels: what a machine lacks', () => {
  const own = { os: 'linux', gpu: 'true' };
  expect(missingLabels({ os: 'linux' }, own)).toBe('');
  expect(missingLabels({ os: 'macos', ram: '64', gpu: 'true' }, own)).toBe('os=macos, ram=64');
});
