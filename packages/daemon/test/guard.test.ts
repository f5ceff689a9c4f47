import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import type { TestOptions } from './support/daemon.js';
import {
  noTmux,
  removeSessions,
  spawn,
  startAgentDaemon,
  untilIs,
  type AgentDaemon,
} from './support/sessions.js';

const again = inCampaign('process');

let daemon: AgentDaemon;

afterEach(async () => {
  await removeSessions(daemon.api);
  await daemon.dispose();
});

async function start(flags: TestOptions['flags'] = {}, home?: string): Promise<void> {
  daemon = await startAgentDaemon({ flags, ...(home !== undefined && { home }) });
}

const agent = (prompt: string) =>
  spawn(daemon.api, { prompt, backend: 'claude', cwd: daemon.workdir, name: 'mill' });

const outputOf = async (id: string): Promise<string[]> =>
  (await daemon.api.ok('GET', `/api/v1/sessions/${id}/output?limit=5000`)).lines;

/** Prompts that the agent received, from its transcript. */
const sentTo = async (id: string): Promise<string[]> =>
  (await outputOf(id)).filter((line) => /^> [/a-z]/.test(line)).map((line) => line.slice(2).trim());

const notes = async (): Promise<string[]> => {
  const inbox = (await daemon.api.ok('GET', '/api/v1/inbox')) as DaemonSchema<'Inbox'>;
  return inbox.notes.map(({ kind }) => kind);
};
const contextNotes = async () => (await notes()).filter((kind) => kind.startsWith('context_'));

const compactions = (): Record<string, unknown>[] => {
  const text = readFileSync(join(daemon.dataDir, 'savings', 'ledger.jsonl'), 'utf8');
  const lines = text.trim().split('\n');
  return lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ feature }) => feature === 'compact');
};

const stateOf = (session: DaemonSchema<'Session'>) => [session.status, session.context_state];

describe.skipIf(noTmux)(`an agent in tmux${noTmux ? ` (${noTmux})` : ''}`, () => {
  test('that is idle with a critical context is compacted once, with an alert and a saving', async () => {
    await start();
    const { id } = await agent('context 450k');
    await untilIs(daemon.api, id, stateOf, ['idle', 'ok']);
    expect(await sentTo(id)).toContain('/compact');
    expect(await contextNotes()).toEqual(['context_critical', 'context_warning']);
    await expect.poll(() => compactions()).toHaveLength(1);
    expect(compactions()[0]).toMatchObject({ agent_id: id, basis: 'MEASURED' });
    const { raw_tokens, kept_tokens } = compactions()[0] as Record<string, number>;
    expect([raw_tokens! >= 450_000, kept_tokens! < 60_000]).toEqual([true, true]);
  });

  test('that is busy with a critical context is interrupted, compacts and goes on', async () => {
    await start({ 'tokens-force-compact': 'on', 'tokens-compact-resume-prompt': 'say back at it' });
    const { id } = await agent('context 450k write notes.txt sleep 600');
    await expect
      .poll(() => outputOf(id), { timeout: 90_000, interval: 100 })
      .toContain('● back at it');
    const lines = await outputOf(id);
    const order = ['Interrupted by user', 'Compacted the conversation', '● back at it'];
    const places = order.map((text) => lines.findIndex((line) => line.includes(text)));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
    await untilIs(daemon.api, id, stateOf, ['idle', 'ok']);
  });

  again('that is busy is left alone until its override says otherwise', async () => {
    await start();
    const { id } = await agent('context 450k write notes.txt sleep 600');
    await untilIs(daemon.api, id, stateOf, ['working', 'critical']);
    await expect.poll(contextNotes).toHaveLength(2);
    expect((await outputOf(id)).join('\n')).not.toContain('Interrupted');
    const path = `/api/v1/sessions/${id}/force-compact`;
    const answer = await daemon.api.ok('PATCH', path, { state: 'on' });
    expect(answer).toEqual({ id, state: 'on', effective: true });
    await expect
      .poll(() => outputOf(id), { timeout: 90_000, interval: 100 })
      .toContain('● Done: continue');
    expect((await outputOf(id)).join('\n')).toContain('Interrupted');
  });

  again('that waits raises one alert, also across a restart of the daemon', async () => {
    await start();
    const { id } = await agent('ask');
    await expect.poll(notes, { timeout: 60_000 }).toEqual(['waiting_for_input']);
    await daemon.stop();
    await start({}, daemon.home);
    const isTaken = (session: DaemonSchema<'Session'>) => session.status;
    await untilIs(daemon.api, id, isTaken, 'waiting_for_input');
    expect(await notes()).toEqual(['waiting_for_input']);
    await daemon.api.ok('POST', `/api/v1/sessions/${id}:send`, { text: '1' });
    await untilIs(daemon.api, id, isTaken, 'idle');
    await daemon.api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'ask' });
    await expect.poll(notes, { timeout: 60_000 }).toHaveLength(2);
  });

  again('is not guarded at all when the guard is off', async () => {
    await start({ 'tokens-guard': 'off', 'tokens-force-compact': 'on' });
    const { id } = await agent('context 450k');
    await untilIs(daemon.api, id, stateOf, ['idle', 'critical']);
    expect(await contextNotes()).toEqual([]);
    expect(await sentTo(id)).not.toContain('/compact');
  });
});
