import { systemClock } from '@millrace/kit/clock';
import type { ClientContext, SessionUpdate } from '@agentclientprotocol/sdk';
import { describe, expect, test } from 'vitest';
import type { HostEvent } from './host-events.js';
import { AcpHost } from './host.js';
import type { HostLaunch, HostState } from './state.js';

const launch: HostLaunch = {
  file: 'agent',
  args: [],
  cwd: '/',
  socket: '',
  resume: null,
  prompt: 'go',
  resumePrompt: null,
  model: null,
  mode: null,
};

const modes = {
  currentModeId: 'agent',
  availableModes: ['read-only', 'workspace-write', 'agent'].map((id) => ({ id, name: id })),
};

/** Timers that run when a test says so. */
const pauses = {
  due: new Set<() => void>(),
  after(_delayMs: number, run: () => void) {
    pauses.due.add(run);
    return { cancel: () => void pauses.due.delete(run) };
  },
  pass() {
    const due = [...pauses.due];
    pauses.due.clear();
    for (const run of due) run();
  },
};

/** Runs one turn of an agent that sends these updates and ends the turn well. */
async function runTurn(
  updates: SessionUpdate[],
  more: Partial<HostLaunch> = {},
  afterUpdate: () => void = () => undefined,
) {
  const state: HostState[] = [];
  const events: HostEvent[] = [];
  const requests: { method: string; params: unknown }[] = [];
  const host = new AcpHost({
    launch: { ...launch, ...more },
    clock: { ...systemClock, after: pauses.after },
    emit: (event) => events.push(event),
    onState: (each) => state.push(each),
  });
  const agent = {
    async request(method: string, params: unknown) {
      requests.push({ method, params });
      if (method === 'initialize') return { protocolVersion: 1, agentCapabilities: {} };
      if (method === 'session/new') return { sessionId: 's1', modes };
      if (method !== 'session/prompt') return {};
      for (const update of updates) {
        host.update(update);
        afterUpdate();
      }
      return { stopReason: 'end_turn' };
    },
  };
  await host.begin(agent as unknown as ClientContext);
  await expect.poll(() => state.at(-1)!.stopReason).toBe('end_turn');
  return { last: state.at(-1)!, requests, events };
}

const threadStatus = (type: string): SessionUpdate => ({
  sessionUpdate: 'session_info_update',
  _meta: { codex: { threadStatus: { type } } },
});

const message = (text: string): SessionUpdate => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text },
});

describe('ACP host', () => {
  test('a turn fails when codex-acp reports a system error before it ends well', async () => {
    const text = '{"error":{"type":"invalid_request_error","message":"fake model error 400"}}\n\n';
    const { last } = await runTurn([
      message('Warning: Model metadata for `gpt-5.1-codex` not found.\n\n'),
      threadStatus('active'),
      threadStatus('systemError'),
      message(text),
    ]);
    expect(last.failure?.text).toBe(text.trim());
  });

  test('a turn that recovers from a system error does not fail', async () => {
    const { last } = await runTurn([
      threadStatus('systemError'),
      message('Reconnecting'),
      threadStatus('active'),
      message('hello'),
      threadStatus('idle'),
    ]);
    expect(last.failure).toBeNull();
  });

  test('a mode that asks is chosen instead of one that does not', async () => {
    const modeInstead = { agent: 'workspace-write' };
    const chosen = {
      method: 'session/set_mode',
      params: { sessionId: 's1', modeId: expect.any(String) },
    };
    const { last, requests } = await runTurn([message('hello')], { modeInstead });
    expect(last.mode).toBe('workspace-write');
    expect(requests).toContainEqual(chosen);
  });

  test.each([
    { more: { mode: 'agent', modeInstead: { agent: 'workspace-write' } }, why: 'requested' },
    { more: { modeInstead: { agent: 'unheard-of' } }, why: 'the only one' },
    { more: { modeInstead: { other: 'workspace-write' } }, why: 'not listed' },
  ])('the mode of the agent stays when it is $why', async ({ more }) => {
    const { last, requests } = await runTurn([message('hello')], more);
    expect(last.mode).toBe('agent');
    expect(requests.map(({ method }) => method)).not.toContain('session/set_mode');
  });

  test('text without an end of line is written when the agent pauses', async () => {
    const updates = ['All ', 'is well', '.\nBye', ''].map(message);
    const { events } = await runTurn(updates, {}, () => pauses.pass());
    expect(events.filter(({ type }) => type === 'message')).toEqual([
      { type: 'message', text: 'All ' },
      { type: 'message', text: 'is well', isRest: true },
      { type: 'message', text: '.\n', isRest: true },
      { type: 'message', text: 'Bye' },
    ]);
    const whole = await runTurn(updates);
    expect(whole.events.filter(({ type }) => type === 'message')).toEqual([
      { type: 'message', text: 'All is well.\n' },
      { type: 'message', text: 'Bye' },
    ]);
  });
});
