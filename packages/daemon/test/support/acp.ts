import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { fakeAgentCommand } from './fake-agent.js';
import type { AgentDaemon } from './sessions.js';

/** Puts a `gemini` on the search path that speaks the Agent Client Protocol, and finds it. */
export async function installAcpAgent({
  home,
  api,
}: Pick<AgentDaemon, 'home' | 'api'>): Promise<void> {
  const lines = [
    '#!/bin/sh',
    `if [ "$1" = --help ]; then echo '  --acp  Speak ACP'; exit 0; fi`,
    fakeAgentCommand(join(home, 'bin')),
    '',
  ];
  writeFileSync(join(home, 'bin', 'gemini'), lines.join('\n'), { mode: 0o755 });
  await api.ok('POST', '/api/v1/backends/rescan?acp=true');
  expect((await api.row('gemini')).acp).toMatchObject({ via: 'native' });
}
