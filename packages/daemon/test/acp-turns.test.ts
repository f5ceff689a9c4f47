import { expect, vi } from 'vitest';
import { installAcpAgent } from './support/acp.js';
import { EventSource } from './support/event-source.js';
import { agentTest as test, spawn, until, type Session } from './support/sessions.js';

/** `MILLRACE_ACP_TURNS=210 npx vitest run packages/daemon/test/acp-turns.test.ts` runs more. */
const turns = Number(process.env['MILLRACE_ACP_TURNS'] ?? 30);
const patience = { timeout: 120_000, interval: 20 };
const timeout = 120_000 + turns * 3_000;

test('over ACP the status is right in every turn', { timeout }, async ({ newDaemon }) => {
  const daemon = await newDaemon();
  await installAcpAgent(daemon);
  const { api, workdir, url } = daemon;
  const { id } = await spawn(api, { prompt: 'say 0', backend: 'gemini', cwd: workdir });
  await until(api, id, 'idle');
  const events = await EventSource.open(url);
  for (let turn = 1; turn <= turns; turn++) {
    const isAsking = turn % 3 === 0;
    const fails = turn % 5 === 0;
    const text = `${isAsking ? 'ask ' : ''}${fails ? 'fail 500 ' : ''}say ${turn}`;
    const sent = await api.ok('POST', `/api/v1/sessions/${id}:send`, { text });
    expect(sent.status).toBe('working');
    if (isAsking) {
      const open = `/api/v1/questions?status=open&session_id=${id}`;
      const question = await vi.waitFor(async () => {
        const [first] = (await api.ok('GET', open)).questions;
        expect(first).toBeDefined();
        return first as { id: string };
      }, patience);
      await until(api, id, 'waiting_for_input');
      await api.ok('POST', `/api/v1/questions/${question.id}:answer`, { option_id: 'yes' });
    }
    const idle = await until(api, id, 'idle');
    expect([turn, idle.turn_error ?? null]).toEqual([turn, fails ? 'API Error: 500' : null]);
  }
  const movesSeen = () => {
    const seen = events.events.filter(({ type }) => type === 'session.changed');
    const statuses = seen.map(({ data }) => (data as Session).status);
    return statuses.filter((status, at) => status !== statuses[at - 1]);
  };
  const countOf = (status: string) => movesSeen().filter((each) => each === status).length;
  // Events may arrive after the response that showed the same.
  await vi.waitFor(() => expect(countOf('idle')).toBe(turns), patience);
  const moves = movesSeen();
  // An idle agent only ever works next: no turn was seen to end before it did.
  for (const [at, status] of moves.entries()) {
    if (status === 'idle' && at + 1 < moves.length) expect(moves[at + 1]).toBe('working');
  }
  expect(countOf('waiting_for_input')).toBe(Math.floor(turns / 3));
  events.cut();
});
