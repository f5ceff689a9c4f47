import { expect, test } from 'vitest';
import { providerFlags } from './provider-flags.js';

test('a URL is for one provider, or for all of them', () => {
  expect(providerFlags([])).toEqual({});
  expect(providerFlags(['claude=http://127.0.0.1:1/a?b=c'])).toEqual({
    'providers-claude-url': 'http://127.0.0.1:1/a?b=c',
  });
  expect(providerFlags(['http://127.0.0.1:1', 'cursor=https://x/y'])).toEqual({
    'providers-claude-url': 'http://127.0.0.1:1',
    'providers-cursor-url': 'https://x/y',
    'providers-gemini-url': 'http://127.0.0.1:1',
  });
});

test.for(['claude', 'codex=http://x', 'claude=ftp://x', ''])('"%s" is refused', (text) => {
  expect(() => providerFlags([text])).toThrow(/--provider-url must be a URL/);
});
