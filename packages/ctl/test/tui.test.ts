import { execFileSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { FakeDaemon } from './fake-daemon.js';
import { CTL, startCtl } from './run-ctl.js';
import { hasTmux, TmuxTerminal } from './tmux-terminal.js';

const again = inCampaign('process');

const patient = { timeout: 60_000, interval: 100 };
const sizes = [
  { columns: 80, rows: 24 },
  { columns: 200, rows: 50 },
];

let server: FakeDaemon;
let terminal: TmuxTerminal;
beforeAll(async () => {
  server = await FakeDaemon.start();
});
afterAll(() => server.stop());
beforeEach(() => {
  server.requests.length = 0;
  serveEverything();
});

const session = (id: string, more: object = {}) => ({
  ...contractExample('Session'),
  id,
  name: id,
  driver: 'headless',
  status: 'working',
  ...more,
});
const queue = (paused: boolean) => ({
  name: 'mail',
  summary: {
    paused,
    pending: 7,
    in_flight: 1,
    dlq_depth: 3,
    oldest_pending_age_ms: 5_000,
    callback_url: null,
    version: 1,
    updated_at: '2026-01-15T09:30:00.000Z',
  },
});
const question = {
  ...contractExample('Question'),
  id: 'q1',
  session_id: 'ada',
  title: 'Run a command?',
  body: 'rm -rf build',
  options: [
    { id: 'once', label: 'Allow once', kind: 'allow_once' },
    { id: 'no', label: 'Reject', kind: 'reject' },
  ],
  asked_at: '2026-01-15T09:30:00.000Z',
};

/** A daemon and a queue in one server, whose state the requests change. */
function serveEverything(): void {
  const { routes } = server;
  const registry = contractExample('Registry');
  let isPaused = false;
  let questions = [question];
  routes.clear();
  routes.set('GET /api/v1/events', { isStream: true, body: '' });
  routes.set('GET /api/v1/sessions', { body: { sessions: [session('ada'), session('bob')] } });
  routes.set('GET /api/v1/questions', () => ({ body: { questions } }));
  routes.set('POST /api/v1/questions/q1:answer', () => {
    questions = [];
    return { body: question };
  });
  routes.set('GET /api/v1/backends', () => ({ body: registry }));
  const row = registry.backends[0]!;
  routes.set(`PATCH /api/v1/backends/${row.id}`, (sent) => {
    Object.assign(row, JSON.parse(sent) as object);
    return { body: row };
  });
  routes.set('GET /api/v1/spend', { body: contractExample('SpendRollup') });
  routes.set('GET /api/v1/inbox', { body: contractExample('Inbox') });
  routes.set('GET /v1/admin/queues', () => ({ body: [queue(isPaused)] }));
  for (const act of ['pause', 'resume']) {
    routes.set(`POST /v1/admin/queues/mail:${act}`, () => {
      isPaused = act === 'pause';
      return { body: { paused: isPaused } };
    });
  }
  routes.set('POST /v1/queues/mail/dlq:redrive', { status: 202, body: { job: { id: 'job1' } } });
}

function open(size = sizes[0]!): void {
  const tokens = { MILLRACE_TOKEN: 'mr_a_b', MILLRACE_QUEUE_TOKEN: 'mr_a_b' };
  terminal = new TmuxTerminal(size, tokens);
  const urls = `--url ${server.url} --queue-url ${server.url}`;
  terminal.run(`'${process.execPath}' '${CTL}' tui ${urls}; echo "exit code $?"`);
}

const shows = (text: string | RegExp) =>
  expect.poll(() => terminal.screen(), patient).toMatch(text);
const sent = (line: string) => server.requests.find((request) => request.line === line)?.body;

/** The terminal is as it was before: normal screen, cursor, and a shell that edits lines. */
async function expectRestored(): Promise<void> {
  await expect.poll(() => terminal.isAlternate, patient).toBe(false);
  expect(terminal.hasCursor).toBe(true);
  terminal.run('stty -a | tr " ;" "\\n\\n" | grep -x -e icanon -e echo | sort | xargs');
  await shows(/^echo icanon$/m);
}

describe.skipIf(!hasTmux)('tui (needs tmux)', () => {
  afterEach(() => terminal.close());

  test.each(sizes)('$columns x $rows: shows every tab, and its keys', async (size) => {
    open(size);
    await shows(/> \S*ada.* working/);
    expect(terminal.isAlternate).toBe(true);
    for (const [key, text, keys] of [
      ['2', /ada +\S.*permission +Run a command\?/, 'Enter answer'],
      ['3', /mail +running +7 +\d+ +1 +3/, 'p pause/resume  r redrive'],
      ['4', /INSTALLED +TIER/, 'e enable/disable'],
      ['5', /All time/, 'R refresh'],
      ['6', /SEVERITY +NOTIFICATION/, 'Enter mark read'],
      ['1', /> \S*ada/, 'n new'],
    ] as const) {
      terminal.press(key);
      // A screen may be read while it is painted.
      await vi.waitFor(() => {
        const lines = terminal.lines();
        expect(lines.join('\n')).toMatch(text);
        expect(lines).toHaveLength(size.rows);
        expect(lines[0]).toContain('1 Fleet 2  2 Questions 1  3 Queues 1');
        expect(lines.at(-2)).toContain(keys);
        expect(lines.at(-2)).toContain('? help');
      }, patient);
    }
    terminal.press('q');
    await shows('exit code 0');
    await expectRestored();
  });

  again('shows a change when the daemon sends an event', async () => {
    open();
    await shows(/^ live/m);
    const waiting = session('eve', {
      name: 'eve, the second reviewer',
      status: 'waiting_for_input',
    });
    server.routes.set('GET /api/v1/sessions', { body: { sessions: [waiting] } });
    server.emit('session.changed');
    await shows(/> \S*eve.* waiting_for_input/);
  });

  test('the fleet: preview, filter, help, and a key for everything an agent can do', async () => {
    const many = Array.from({ length: 30 }, (_, at) => session(`agent-${at}`));
    const ada = session('ada', { driver: 'tmux', status: 'waiting_for_input' });
    const { routes } = server;
    routes.set('GET /api/v1/sessions', { body: { sessions: [ada, ...many] } });
    const red = '\u001B[31mred\u001B[39m \u001B]0;title\u0007';
    routes.set('GET /api/v1/sessions/ada/screen', { body: { lines: ['first', red] } });
    const log = { body: { lines: ['what it printed'], next: 1 } };
    for (const { id } of [ada, ...many]) routes.set(`GET /api/v1/sessions/${id}/output`, log);
    const diff = { body: contractExample('SessionDiff') };
    routes.set('GET /api/v1/sessions/ada/diff', diff);
    routes.set('POST /api/v1/sessions/ada:merge', { body: contractExample('SessionMerge') });
    routes.set('POST /api/v1/sessions/ada:serve', {
      body: { url: 'http://127.0.0.1:4000/', port: 4000, pid: 7, command: 'npm run dev' },
    });
    routes.set('POST /api/v1/sessions/ada:send', { body: ada });
    routes.set('POST /api/v1/sessions/ada:stop', { body: { ...ada, status: 'done' } });
    routes.set('POST /api/v1/spawn', { status: 201, body: session('eve') });
    open();
    // The list is on the left, the screen in colour on the right, and nothing else of it passes.
    await shows(/^ {2}NAME +STATUS +│ screen · claude/m);
    await shows(/^> ada +waiting_for_input +│ first$/m);
    await shows(/│ red/);
    expect(terminal.colours()).toContain('\u001B[31mred');
    expect(terminal.screen()).not.toContain('title\u0007');
    terminal.press('d');
    await shows(/│ diff --git/);
    terminal.press('l');
    await shows(/│ what it printed/);
    terminal.press('Escape');
    await shows(/│ red/);
    terminal.press('a');
    await shows('[1] Allow once');
    terminal.press('1');
    await shows('Answered.');
    expect(sent('POST /api/v1/questions/q1:answer')).toBe('{"option_id":"once"}');
    for (const [key, prompt, typed, done, line, body] of [
      [
        's',
        'Send to the agent:',
        'go on',
        'received it',
        'POST /api/v1/sessions/ada:send',
        'go on',
      ],
      ['n', 'Prompt of the new agent:', 'fix it', 'Started eve', 'POST /api/v1/spawn', 'fix it'],
    ] as const) {
      terminal.press(key);
      await shows(prompt);
      terminal.type(typed);
      terminal.press('Enter');
      await shows(done);
      expect(sent(line)).toContain(body);
    }
    terminal.press('m');
    await shows('into its base? [y/N]');
    terminal.press('y');
    await shows(/Merged \S+ into main/);
    terminal.press('v');
    await shows('Served at http://127.0.0.1:');
    terminal.press('k');
    await shows('Stop this agent? [y/N]');
    terminal.press('y');
    await shows('ada is done.');
    terminal.press('/');
    terminal.type('agent-29');
    await shows(/^ {2}NAME +STATUS +│ logs/m);
    await shows(/^> agent-29 +working +│ what it printed/m);
    expect(terminal.screen()).not.toContain('agent-28');
    terminal.press('Enter');
    terminal.press('?');
    await shows(/^ {2}m +merge$/m);
    terminal.press('?');
    await shows(/│ what it printed/);
  });

  again('disables and enables a backend', async () => {
    const row = contractExample('Registry').backends[0]!;
    open();
    await shows(/^ live/m);
    terminal.press('4');
    await shows(new RegExp(`> ${row.id} `));
    terminal.press('e');
    await shows(`${row.id} is now disabled.`);
    expect(sent(`PATCH /api/v1/backends/${row.id}`)).toBe('{"enabled":false}');
    await shows(new RegExp(`> ${row.id} .* no +\\S+`));
    terminal.press('e');
    await shows(`${row.id} is now enabled.`);
  });

  test('answers a question with one of its options', async () => {
    open();
    await shows(/^ live/m);
    terminal.press('2');
    await shows('rm -rf build');
    terminal.press('Enter');
    await shows(/\[1\] Allow once {2}\[2\] Reject\n 1-2 choose/);
    terminal.press('2');
    await shows('No agent is waiting for an answer.');
    expect(sent('POST /api/v1/questions/q1:answer')).toBe('{"option_id":"no"}');
  });

  again('answers a question without options with a text', async () => {
    const textQuestion = { ...question, kind: 'text', title: 'Which one?', options: [] };
    server.routes.set('GET /api/v1/questions', { body: { questions: [textQuestion] } });
    open();
    await shows(/^ live/m);
    terminal.press('2');
    await shows(/ada +\S.*Which one\?/);
    terminal.press('Enter');
    await shows('Answer:');
    terminal.type('the first');
    await shows('Answer: the first');
    terminal.press('Enter');
    await shows('Answered.');
    expect(sent('POST /api/v1/questions/q1:answer')).toBe('{"text":"the first"}');
  });

  again('pauses, resumes and redrives a queue', async () => {
    open();
    await shows(/^ live/m);
    terminal.press('3');
    await shows(/> mail +running/);
    terminal.press('p');
    await shows(/> mail +paused/);
    terminal.press('p');
    await shows(/> mail +running/);
    terminal.press('r');
    await shows('Run 3 dead tasks of mail again? [y/N]');
    terminal.press('n');
    await shows(/^ live/m);
    expect(server.requests.some(({ line }) => line.includes('redrive'))).toBe(false);
    terminal.press('r');
    await shows('[y/N]');
    terminal.press('y');
    await shows('Redrive of mail started as job job1.');
    expect(sent('POST /v1/queues/mail/dlq:redrive?async=true')).toBe('{"filter":{}}');
  });

  again('follows the size of the terminal', async () => {
    open(sizes[0]);
    await shows(/> \S*ada/);
    terminal.resize(120, 30);
    await expect.poll(() => terminal.lines().at(-2), patient).toContain('q quit');
    expect(terminal.lines()[1]).toBe('─'.repeat(120));
  });

  test('escapes control characters of an agent', async () => {
    const hostile = session('x', { name: 'a\u001B]0;b\u0007\u202Ec' });
    server.routes.set('GET /api/v1/sessions', { body: { sessions: [hostile] } });
    open();
    await shows('a␛]0;b␇\\u202ec');
  });

  test('SIGTERM: restores the terminal', async () => {
    open();
    await shows(/> \S*ada/);
    process.kill(pidOf(server.url), 'SIGTERM');
    await shows('exit code 143');
    await expectRestored();
  });

  test('Ctrl-C: restores the terminal', async () => {
    open();
    await shows(/> \S*ada/);
    terminal.press('C-c');
    await shows(/^exit code 0$/m);
    await expectRestored();
  });

  again('a daemon that is away is reported before the screen is taken', async () => {
    terminal = new TmuxTerminal(sizes[0]!);
    terminal.run(`'${process.execPath}' '${CTL}' tui --url http://127.0.0.1:1`);
    await shows('no daemon answers at http://127.0.0.1:1');
    expect(terminal.isAlternate).toBe(false);
  });

  test('a crash restores the terminal and says what happened', async () => {
    open();
    await shows(/^ live/m);
    server.routes.set('GET /api/v1/sessions', { body: { sessions: [{ id: 'broken' }] } });
    server.emit('session.changed');
    await shows('exit code 1');
    expect(terminal.screen()).toContain('ctl: internal error');
    await expectRestored();
  });
});

/** The process that runs the dashboard of this server. */
function pidOf(url: string): number {
  const lines = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n');
  const isIt = (line: string) => line.includes(`${CTL} tui`) && line.includes(url);
  return Number.parseInt(lines.find(isIt)!, 10);
}

test('tui: without a terminal it says what to use instead', async () => {
  const ended = await startCtl(['tui', '--url', server.url]).ended;
  expect(ended).toMatchObject({ code: 2, out: '' });
  expect(ended.err).toContain('ctl tui needs a terminal');
});
