import { UsageError } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { parseConfigText } from './config-file.js';

const yaml = `# a queue
callback:
  url: https://example.org
  signing:
    secret_refs:
      - new
      - old
retry: {max_atempts: 3}
"a/b~c": 1
`;

test.each([
  ['', 1],
  ['/callback', 2],
  ['/callback/url', 3],
  ['/callback/signing/secret_refs/1', 7],
  ['/callback/timeout_ms', 2],
  ['/retry/max_atempts', 8],
  ['/a~1b~0c', 9],
  ['/nothing', 1],
])('%j stands in line %d', (pointer, line) => {
  expect(parseConfigText(yaml, 'q.yaml').lineOf(pointer)).toBe(line);
});

test('JSON is read too, with its lines', () => {
  const file = parseConfigText('{\n  "callback": {\n    "url": "x"\n  }\n}', 'q.json');
  expect(file.config).toEqual({ callback: { url: 'x' } });
  expect(file.lineOf('/callback/url')).toBe(3);
});

test('times stay the text they are', () => {
  const { config } = parseConfigText('created_at: 2026-02-20T08:00:00.000Z\n', 'q.yaml');
  expect(config).toEqual({ created_at: '2026-02-20T08:00:00.000Z' });
});

test.each([
  ['callback:\n\turl: x', 'q.yaml:2: '],
  ['callback: [', 'q.yaml:1: '],
  ['a: 1\na: 2', 'q.yaml:2: Map keys must be unique.'],
  ['a: 1\n---\nb: 2', 'q.yaml:2: '],
  ['just words', 'q.yaml is not a map of settings'],
  ['# nothing', 'q.yaml is empty'],
])('%j is refused with its place', (text, message) => {
  expect(() => parseConfigText(text, 'q.yaml')).toThrow(UsageError);
  expect(() => parseConfigText(text, 'q.yaml')).toThrow(message);
});

test('a few anchors cannot stand for a billion values', () => {
  const level = (n: number) =>
    `l${n}: &l${n} [${Array(10)
      .fill(`*l${n - 1}`)
      .join(',')}]`;
  const bomb = ['l0: &l0 x', ...Array.from({ length: 9 }, (_, n) => level(n + 1))].join('\n');
  expect(() => parseConfigText(bomb, 'q.yaml')).toThrow(UsageError);
});
