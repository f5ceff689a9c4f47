import { expect, test } from 'vitest';
import { agentVariables, type AgentVariablesParts } from './programs.js';

const environment = {
  PATH: '/bin',
  HOME: '/home/ada',
  LC_TIME: 'C',
  SSH_AUTH_SOCK: '/run/agent',
  https_proxy: 'http://proxy:3128',
  XDG_CONFIG_HOME: '/home/ada/.config',
  ANTHROPIC_API_KEY: 'anthropic',
  CLAUDE_CONFIG_DIR: '/claude',
  CLAUDE_CODE_ENTRYPOINT: 'cli',
  OPENAI_API_KEY: 'openai',
  CODEX_HOME: '/codex',
  AWS_SECRET_ACCESS_KEY: 'aws',
  DATABASE_URL: 'postgres://secret',
  MILLRACE_TOKEN: 'ours',
  npm_config_registry: 'x',
  TMUX: 'outer',
};

function given(
  backend: string,
  settings: Partial<AgentVariablesParts['settings']> = {},
  extra: AgentVariablesParts['extra'] = [],
) {
  const all = { env: [], env_inherit: 'allowlist' as const, ...settings };
  return agentVariables({ environment, extra, settings: all })(backend);
}

const common = ['HOME', 'LC_TIME', 'PATH', 'SSH_AUTH_SOCK', 'XDG_CONFIG_HOME', 'https_proxy'];
const names = (variables: object) => Object.keys(variables).toSorted();

test('agent environment: an agent gets the common variables and those of its backend', () => {
  expect(names(given('claude'))).toEqual(
    [...common, 'ANTHROPIC_API_KEY', 'CLAUDE_CONFIG_DIR'].toSorted(),
  );
  expect(names(given('codex'))).toEqual([...common, 'CODEX_HOME', 'OPENAI_API_KEY'].toSorted());
  expect(names(given('mycli'))).toEqual(common);
});

test('agent environment: a backend that is like another gets the same', () => {
  expect(given('mycli', {}, [{ id: 'mycli', like: 'codex' }])).toEqual(given('codex'));
});

test('agent environment: agents.env adds names, prefixes and values', () => {
  expect(given('kimi', { env: ['AWS_*', 'DATABASE_URL'] })).toMatchObject({
    AWS_SECRET_ACCESS_KEY: 'aws',
    DATABASE_URL: 'postgres://secret',
  });
  const set = given('kimi', { env: { PATH: '/opt/bin', DEPLOY: 'no' } });
  expect(set).toMatchObject({ PATH: '/opt/bin', DEPLOY: 'no' });
  expect(set).not.toHaveProperty('DATABASE_URL');
});

test('agent environment: env_inherit all passes everything but our own settings', () => {
  const all = given('kimi', { env_inherit: 'all' });
  expect(all).toMatchObject({ AWS_SECRET_ACCESS_KEY: 'aws', OPENAI_API_KEY: 'openai' });
  for (const name of ['MILLRACE_TOKEN', 'npm_config_registry', 'TMUX', 'CLAUDE_CODE_ENTRYPOINT']) {
    expect(all).not.toHaveProperty(name);
  }
  expect(given('kimi', { env: ['MILLRACE_TOKEN'] })).not.toHaveProperty('MILLRACE_TOKEN');
});
