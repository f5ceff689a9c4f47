import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { flagsOf, loadConfig } from '@millrace/kit/config';
import { UsageError } from '@millrace/kit/errors';
import { afterEach, expect, test } from 'vitest';
import { configView } from './config-view.js';
import { daemonConfig, defaultConfigFile, defaultDataDirectory } from './config.js';

const directories: string[] = [];
afterEach(() => {
  for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true });
});

function load(yaml: string, environment: Record<string, string> = {}, flags = {}) {
  const home = mkdtempSync(join(tmpdir(), 'mr-config-'));
  directories.push(home);
  const file = join(home, 'config.yaml');
  writeFileSync(file, yaml);
  return loadConfig(daemonConfig, {
    environment: { HOME: home, ...environment },
    flags: { config: file, ...flags },
  });
}

const example = `
listen: 127.0.0.1:8765
data_dir: ~/.local/share/millrace
savings: true
savings_samples: false
insights: true
metrics: true
api_docs: true
backends: {limit_retry: 15m, extra: [{id: mycli, binary: mycli}], local_url: http://127.0.0.1:11434}
tokens: {warn: 200k, critical: 400k, guard: true, warn_alert: true, auto_compact: true, force_compact: false, compact_resume_prompt: "continue", budget_gate: true, budget_daily_usd: 0, budget_weekly_usd: 0}
notify: {enabled: false, webhook_enabled: false, webhook_url: ""}
branches: {enabled: true}
providers: {codex: {command: codex}, cursor: {url: http://127.0.0.1:1/b}, gemini: {url: http://127.0.0.1:1/c}, claude: {url: http://127.0.0.1:1/d}}
`;

test('the example of the documentation is read without a word', () => {
  const { values, warnings } = load(example);
  expect(warnings).toEqual([]);
  expect(values).toMatchObject({
    listen: { host: '127.0.0.1', port: 8765 },
    backends: { limit_retry: 900_000, extra: [{ id: 'mycli', binary: 'mycli' }] },
    tokens: { warn: 200_000, critical: 400_000, budget_daily_usd: 0 },
    providers: { claude: { url: 'http://127.0.0.1:1/d' } },
  });
  expect(values.data_dir).toMatch(/\.local\/share\/millrace$/);
});

test('without a word everything has the documented default', () => {
  const { values } = load('');
  expect(values).toMatchObject({
    listen: { host: '127.0.0.1', port: 8765 },
    savings: true,
    savings_samples: false,
    insights: true,
    metrics: true,
    api_docs: true,
    backends: { limit_retry: 900_000, extra: [], local_url: 'http://127.0.0.1:11434' },
    tokens: {
      warn: 200_000,
      critical: 400_000,
      guard: true,
      warn_alert: true,
      auto_compact: true,
      force_compact: false,
      compact_resume_prompt: 'continue',
      budget_gate: true,
      budget_daily_usd: 0,
      budget_weekly_usd: 0,
    },
    notify: { enabled: false, webhook_enabled: false, webhook_url: '' },
    branches: { enabled: true },
    providers: {
      codex: { command: 'codex' },
      claude: { url: 'https://api.anthropic.com/api/oauth/usage' },
    },
  });
});

test('dotted keys, variables and flags all reach the same setting', () => {
  expect(load('tokens.warn: 1k').values.tokens.warn).toBe(1_000);
  const variables = { MILLRACE_TOKENS_WARN: '2k', MILLRACE_BACKENDS_LIMIT_RETRY: '1m' };
  const { values } = load('tokens.warn: 1k', variables);
  expect([values.tokens.warn, values.backends.limit_retry]).toEqual([2_000, 60_000]);
  const flags = { 'tokens-warn': '3k', savings: 'off', data: '/somewhere' };
  const flagged = load('tokens.warn: 1k', variables, flags).values;
  expect([flagged.tokens.warn, flagged.savings, flagged.data_dir]).toEqual([
    3_000,
    false,
    '/somewhere',
  ]);
});

test('unknown keys warn with their line, at any depth', () => {
  const { warnings, values } = load(
    'saving: true\nbackends: {limit_retries: 1m, extra: [{id: a, binary: b, color: red}]}\n',
  );
  expect(warnings).toHaveLength(3);
  expect(warnings.join('\n')).toMatch(
    /config\.yaml:1: unknown key "saving"; did you mean "savings"/,
  );
  expect(warnings.join('\n')).toMatch(/config\.yaml:2: unknown key "backends\.limit_retries"/);
  expect(warnings.join('\n')).toMatch(/config\.yaml:2: unknown key "backends\.extra\[0\]\.color"/);
  expect(values.backends.extra).toEqual([{ id: 'a', binary: 'b' }]);
});

test('old keys still say what they said, with a warning each', () => {
  const { values, warnings } = load(
    'autopilot.brain.backends.free: [gemini]\nautopilot: {brain: {allow_pay_per_use: true}}\n',
  );
  expect(values.autopilot.brain).toEqual({
    backends: { free: ['gemini'] },
    allow_pay_per_use: true,
  });
  expect(warnings).toEqual([
    expect.stringMatching(
      /config\.yaml:1: autopilot\.brain\.backends\.free is deprecated/,
    ) as string,
    expect.stringMatching(/autopilot\.brain\.allow_pay_per_use is deprecated/) as string,
  ]);
});

test.each([
  ['listen: 8765', /listen must be an address/],
  ['backends.limit_retry: soon', /limit_retry must be a duration/],
  ['tokens: {warn: many}', /tokens\.warn must be a count/],
  ['tokens: {budget_daily_usd: -1}', /budget_daily_usd must be/],
  ['backends: {extra: [{id: local, binary: x}]}', /extra\[0\]\.id is reserved/],
  ['backends: {extra: [{id: a b, binary: x}]}', /extra\[0\]\.id must be an id/],
  ['backends: {local_url: localhost}', /local_url must be a URL/],
  ['notify: {webhook_url: "ftp://x"}', /webhook_url must be an http or https URL/],
  ['savings: perhaps', /savings must be/],
])('%s is reported as a mistake', (yaml, message) => {
  expect(() => load(yaml)).toThrow(UsageError);
  expect(() => load(yaml)).toThrow(message);
});

test('every setting is a flag with a description', () => {
  const flags = flagsOf(daemonConfig);
  const undescribed = flags.filter(({ description, key }) => {
    return description === '' && !key?.startsWith('autopilot.');
  });
  expect(undescribed.map(({ name }) => name)).toEqual([]);
  expect(flags.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['config', 'listen', 'data-dir', 'token', 'backends-limit-retry']),
  );
});

test('the directories follow XDG, and a relative one there is ignored', () => {
  const environment = { HOME: '/home/ada', XDG_CONFIG_HOME: '/c', XDG_DATA_HOME: 'relative' };
  expect(defaultConfigFile(environment)).toBe('/c/millrace/config.yaml');
  expect(defaultDataDirectory(environment)).toBe('/home/ada/.local/share/millrace');
  expect(defaultConfigFile({ HOME: '/home/ada' })).toBe('/home/ada/.config/millrace/config.yaml');
  expect(defaultDataDirectory({ HOME: '/home/ada', XDG_DATA_HOME: '/d' })).toBe('/d/millrace');
});

test('the view tells each value and its place, sorted, with secrets masked', () => {
  const loaded = load(
    'tokens: {budget_daily_usd: 20}\n',
    { MILLRACE_TOKEN: 'a-secret-token-here' },
    { 'savings-samples': true },
  );
  const view = configView({
    loaded,
    dataDir: '/data',
    secretFile: (key) => (key === 'read_only_token' ? '/data/token-read-only' : undefined),
    isPending: (_key, value) => value === '200k',
    isEditable: (key) => key === 'tokens.warn',
  });
  const keys = view.entries.map(({ key }) => key);
  expect(keys).toEqual(keys.toSorted());
  expect(keys.filter((key) => key.startsWith('autopilot'))).toEqual([]);
  const entry = (key: string) => view.entries.find((each) => each.key === key);
  expect(entry('tokens.budget_daily_usd')).toEqual({
    key: 'tokens.budget_daily_usd',
    value: 20,
    source: 'file',
    origin: loaded.file,
    secret: false,
    description: 'Cap on spend per day; 0: none',
    default: 0,
    expected: 'a number of at least 0',
    editable: false,
    needs_restart: false,
    pending: false,
  });
  expect(entry('tokens.warn')).toMatchObject({
    value: '200k',
    source: 'default',
    origin: null,
    editable: true,
    pending: true,
  });
  expect(entry('metrics')).toMatchObject({ needs_restart: true });
  expect(entry('drivers.default')?.choices).toEqual(['auto', 'acp', 'tmux', 'headless']);
  expect(entry('savings_samples')).toMatchObject({ source: 'flag', origin: '--savings-samples' });
  expect(entry('token')).toMatchObject({
    value: '********',
    origin: 'MILLRACE_TOKEN',
    secret: true,
  });
  expect(entry('read_only_token')).toMatchObject({
    value: '********',
    source: 'file',
    origin: '/data/token-read-only',
  });
  expect(entry('data_dir')).toMatchObject({ value: '/data', source: 'default' });
  expect(JSON.stringify(view)).not.toContain('a-secret-token');
});
