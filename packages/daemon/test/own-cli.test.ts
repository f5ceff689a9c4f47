import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import {
  agentTest as test,
  noTmux,
  spawn,
  until,
  type AgentDaemon,
  type Session,
} from './support/sessions.js';

const again = inCampaign('process', test);

/** A command line that a person wrote: it shows a prompt, works, asks, and counts its tokens. */
const script = `#!/bin/sh
count() {
  mkdir -p "$HOME/.mycli"
  printf '{"at":"%s","m":"claude-sonnet-4-5","use":{"in":1000,"out":200,"read":50,"new":10}}\\n' \\
    "$(date -u +%FT%TZ)" >> "$HOME/.mycli/$$.jsonl"
}
turn() {
  echo "thinking about it"
  case "$1" in
    *limit*) echo "Out of tokens, back in 45 minutes"; return;;
    *ask*) printf 'Proceed? (yes/no) '; read -r answer; echo "you said $answer";;
    *key*) printf 'Which colour? [r/g] '; read -r colour; echo "colour $colour";;
  esac
  count
  echo "answer to: $1"
}
echo "mycli 1.0, at your service"
if [ "$#" -gt 0 ]; then turn "$1"; exit; fi
while printf 'mycli> ' && read -r line; do turn "$line"; done
`;

const rules = {
  id: 'mycli',
  binary: 'mycli',
  ready: '^mycli> $',
  working: 'thinking',
  asks: [
    { match: 'Proceed\\?', options: ['yes', 'no'] },
    {
      match: 'Which colour',
      options: [
        { label: 'Red', keys: 'r' },
        { label: 'Green', keys: 'g Enter' },
      ],
    },
  ],
  limit: { match: 'Out of tokens', reset: 'back in (.+)' },
  transcript: {
    format: 'jsonl',
    path: '~/.mycli/*.jsonl',
    fields: {
      input: 'use.in',
      output: 'use.out',
      cache_read: 'use.read',
      cache_write: 'use.new',
      model: 'm',
      at: 'at',
    },
  },
};

type NewDaemon = (options?: object) => Promise<AgentDaemon>;

async function daemonWith(newDaemon: NewDaemon, ...extra: object[]): Promise<AgentDaemon> {
  const daemon = await newDaemon({ flags: { 'backends-extra': JSON.stringify(extra) } });
  writeFileSync(join(daemon.home, 'bin', 'mycli'), script, { mode: 0o755 });
  await daemon.api.ok('POST', '/api/v1/backends/rescan');
  return daemon;
}

/** By the prices of the model: 3, 15, 0.30 and 3.75 dollars per million tokens. */
const price = (1000 * 3 + 200 * 15 + 50 * 0.3 + 10 * 3.75) / 1e6;

async function expectSpend({ api }: AgentDaemon, { id: key }: Session): Promise<void> {
  const counts = { input_tokens: 1000, output_tokens: 200, usd: null };
  await soon(async () => {
    const { by_agent: rows } = await api.ok('GET', '/api/v1/spend');
    expect(rows).toContainEqual({ key, ...counts, exact_usd: expect.closeTo(price, 6) });
  });
}

/** Transcripts and output are read beside the process, so they may come after its end. */
const soon = <Seen>(check: () => Promise<Seen>) =>
  vi.waitFor(check, { timeout: 60_000, interval: 50 });

describe.skipIf(noTmux).concurrent(`own command lines in tmux${noTmux ?? ''}`, () => {
  test('rules: it takes its prompt, asks, is answered, and its tokens are its own', async ({
    newDaemon,
  }) => {
    const daemon = await daemonWith(newDaemon, rules);
    const { api, workdir } = daemon;
    const { id } = await spawn(api, {
      prompt: 'ask me',
      backend: 'mycli',
      cwd: workdir,
      driver: 'tmux',
    });
    const asking = await until(api, id, 'waiting_for_input');
    expect(asking.status_reason).toBe('it asks: Proceed? (yes/no)');
    const { questions } = await api.ok('GET', '/api/v1/questions?status=open');
    expect(questions).toMatchObject([
      {
        session_id: id,
        title: 'Proceed? (yes/no)',
        options: [
          { id: '1', label: 'yes', kind: 'allow_once' },
          { id: '2', label: 'no', kind: 'reject' },
        ],
      },
    ]);
    await api.ok('POST', `/api/v1/questions/${questions[0].id}:answer`, { option_id: '2' });
    await until(api, id, 'idle');
    // The screen may be read before the transcript.
    const idle = await soon(async () => {
      const session: Session = await api.ok('GET', `/api/v1/sessions/${id}`);
      expect(session).toMatchObject({ model: 'claude-sonnet-4-5', context_tokens: 1060 });
      return session;
    });
    expect(idle.backend_session_id).toMatch(/^\d+$/);
    const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
    expect(lines).toContain('you said no');
    const screen = await api.ok('GET', `/api/v1/sessions/${id}/screen`);
    expect(screen.lines.at(-1)).toMatch(/^mycli> ?$/);
    await expectSpend(daemon, idle);

    await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'key one' });
    await until(api, id, 'waiting_for_input');
    const { questions: next } = await api.ok('GET', '/api/v1/questions?status=open');
    await api.ok('POST', `/api/v1/questions/${next[0].id}:answer`, { option_id: '1' });
    await until(api, id, 'idle');
    const after = await api.ok('GET', `/api/v1/sessions/${id}/output`);
    expect(after.lines).toContain('colour r');

    await api.ok('POST', `/api/v1/sessions/${id}:send`, { text: 'limit' });
    const limited = await until(api, id, 'rate_limited');
    const minutes = (Date.parse(limited.limited_until!) - Date.now()) / 60_000;
    expect(Math.round(minutes)).toBeGreaterThan(43);
    expect(minutes).toBeLessThanOrEqual(45);
    expect(limited.last_error).toBe('Out of tokens, back in 45 minutes');
  });

  again('prompt: it comes as an argument, or on stdin', async ({ newDaemon }) => {
    const daemon = await daemonWith(
      newDaemon,
      { ...rules, prompt: 'argument' },
      { ...rules, id: 'piped', prompt: 'stdin' },
    );
    const { api, workdir } = daemon;
    for (const backend of ['mycli', 'piped']) {
      const { id } = await spawn(api, { prompt: 'hi', backend, cwd: workdir, driver: 'tmux' });
      expect(await until(api, id, 'done')).toMatchObject({ exit_code: 0 });
      const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
      expect(lines).toContain('answer to: hi');
    }
  });

  again('prompt: a program that ends before it takes one has failed', async ({ newDaemon }) => {
    const daemon = await daemonWith(newDaemon, { id: 'quick', binary: 'true', ready: 'never' });
    const { api, workdir } = daemon;
    const { id } = await spawn(api, {
      prompt: 'hi',
      backend: 'quick',
      cwd: workdir,
      driver: 'tmux',
    });
    const { last_error: error } = await until(api, id, 'errored');
    expect(error).toBe('its prompt could not be delivered: the program ended before it');
  });
});

describe.concurrent('own command lines without a terminal', () => {
  test('rules: tokens, limits, and the ways of a prompt', async ({ newDaemon }) => {
    const argued = { id: 'argued', binary: 'mycli', prompt: 'argument' };
    const daemon = await daemonWith(newDaemon, rules, argued);
    const { api, workdir } = daemon;
    const run = (backend: string, prompt: string) =>
      spawn(api, { prompt, backend, cwd: workdir, driver: 'headless' });
    const piped = await run('mycli', 'hi');
    const done = await until(api, piped.id, 'done');
    await soon(async () => {
      const session = await api.ok('GET', `/api/v1/sessions/${piped.id}`);
      expect(session).toMatchObject({ model: 'claude-sonnet-4-5', context_tokens: 1060 });
    });
    await expectSpend(daemon, done);
    const { by_backend: rows } = await api.ok('GET', '/api/v1/spend');
    expect(rows).toMatchObject([{ key: 'mycli', exact_usd: expect.closeTo(price, 6) }]);
    const given = await run('argued', 'hi there');
    await until(api, given.id, 'done');
    await soon(async () => {
      const { lines } = await api.ok('GET', `/api/v1/sessions/${given.id}/output`);
      expect(lines).toContain('answer to: hi there');
    });
    const { id } = await run('mycli', 'limit');
    const limited = await until(api, id, 'rate_limited');
    expect(limited).toMatchObject({ last_error: 'Out of tokens, back in 45 minutes' });
    expect(limited.limited_until).not.toBeNull();
  });

  test('config: a bad rule is refused with its place', async ({ newDaemon }) => {
    const refused = async (row: object) => {
      const extra = JSON.stringify([{ id: 'mycli', binary: 'mycli', ...row }]);
      return newDaemon({ flags: { 'backends-extra': extra } }).then(
        () => 'taken',
        (error: unknown) => (error as Error).message,
      );
    };
    expect(await refused({ ready: '(' })).toMatch(
      /backends-extra.*\[0\]\.ready is not a regular expression: /,
    );
    expect(await refused({ asks: [{ match: 'x', option: [] }] })).toMatch(
      /unknown key ".*asks\[0\]\.option".*options/,
    );
    expect(await refused({ limit: { match: 'x', reset: 'y' } })).toMatch(
      /limit\.reset needs a group/,
    );
    expect(await refused({ transcript: { format: 'xml' } })).toMatch(/transcript\.format must be/);
  });
});
