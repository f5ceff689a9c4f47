import { expect, test } from 'vitest';
import { maxBodyLength } from '../questions/question.js';
import { describe } from './requests.js';

test('permission request: shows the command alone', () => {
  const input = { command: 'make test', description: 'Run the tests\nand more' };
  const shown = { tool: 'Bash', title: 'Bash: Run the tests', body: 'make test' };
  expect(describe('Bash', input)).toEqual(shown);
});

test('permission request: shows the file and what changes', () => {
  const edit = { file_path: '/etc/hosts', old_string: 'a\nb', new_string: 'a\nc' };
  expect(describe('Edit', edit)).toMatchObject({ title: 'Edit', body: '/etc/hosts\n-b\n+c' });
  const write = { file_path: '/etc/motd', content: 'hello' };
  expect(describe('Write', write).body).toBe('/etc/motd\n+hello');
});

test('permission request: shows the address, or the whole input', () => {
  expect(describe('WebFetch', { url: 'http://a.example', prompt: 'x' }).body).toBe(
    'http://a.example',
  );
  expect(describe('mcp__a__b', { x: 1 }).body).toBe('{\n  "x": 1\n}');
});

test('permission request: long texts are cut', () => {
  const { tool, title, body } = describe('x'.repeat(999), {
    command: 'y'.repeat(9_999),
    description: 'z'.repeat(999),
  });
  expect([tool.length, title.length <= 500, body.length]).toEqual([200, true, maxBodyLength]);
});
