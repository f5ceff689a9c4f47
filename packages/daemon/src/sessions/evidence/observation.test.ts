import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Driver } from '../drivers/driver.js';
import { Observation, type EvidenceParts } from './observation.js';
import type { Entry } from '../../core/session.js';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'millrace-evidence-'));
});
afterEach(() => rmSync(home, { recursive: true }));

const prompt = `${'─'.repeat(40)}\n❯ \n${'─'.repeat(40)}\n`;
const failed = `> do it\n  ⎿  API Error: 400 bad request\n${prompt}`;
const busy = `> do it\n✻ Thinking… (4s · esc to interrupt)\n${prompt}`;

/** A claude whose transcript never gets the answer to its last prompt. */
function watched() {
  let now = 1_000_000;
  let screen = busy;
  const clock = { ...systemClock, now: () => now, monotonic: () => now };
  const project = join(home, '.claude', 'projects', '-work');
  mkdirSync(project, { recursive: true });
  const line = {
    type: 'user',
    timestamp: new Date(now).toISOString(),
    message: { content: 'do it' },
  };
  writeFileSync(join(project, 'own.jsonl'), `${JSON.stringify(line)}\n`);
  const entry = {
    session: {
      id: 'a',
      driver: 'tmux',
      backend_session_id: 'own',
      workdir: '/work',
      status: 'working',
    },
    handle: { cli: 'claude', starts: 1, format: 'terminal', outputStart: 0, inputAt: now },
  } as unknown as Entry;
  const driver = { name: 'tmux', paste: () => {}, screen: async () => screen } as unknown as Driver;
  const parts = {
    clock,
    dataDir: home,
    places: { home, environment: {} },
    taken: () => new Set<string>(),
    settings: { values: { backends: { extra: [], limit_retry: 1_000 }, tokens: {} } },
  } as unknown as EvidenceParts;
  const observation = new Observation(parts, entry);
  const gather = () => observation.gather(entry, { pid: 1 } as never, driver);
  return {
    gather,
    draw: (text: string) => {
      screen = text;
      mkdirSync(join(home, 'sessions', 'a'), { recursive: true });
      writeFileSync(observation.log.path, text, { flag: 'a' });
    },
    pass: (ms: number) => (now += ms),
  };
}

test('evidence: a prompt at rest ends a turn whose end the transcript lacks', async () => {
  const { gather, draw, pass } = watched();
  expect((await gather()).transcript).toMatchObject({ status: 'working' });
  draw(failed);
  await gather();
  pass(2_000);
  const early = await gather();
  expect(early.transcript).toMatchObject({ status: 'working' });
  expect(early.pane).toMatchObject({ status: 'idle' });
  pass(10_000);
  const { transcript, pane } = await gather();
  expect(transcript).toBeUndefined();
  expect(pane).toMatchObject({ status: 'idle', failure: 'API Error: 400 bad request' });
});

test('evidence: an agent that is busy on its screen works, however long nothing is drawn', async () => {
  const { gather, draw, pass } = watched();
  draw(busy);
  await gather();
  pass(60_000);
  expect((await gather()).transcript).toMatchObject({ status: 'working' });
});

test('evidence: a dialog waits for input although the transcript says nothing about it', async () => {
  const { gather, draw } = watched();
  draw('> do it\n  rm -rf build\n\nDo you want to proceed?\n❯ 1. Yes\n  2. No (esc)\n');
  const { transcript, pane } = await gather();
  expect(transcript).toBeUndefined();
  expect(pane).toMatchObject({ status: 'waiting_for_input' });
});
