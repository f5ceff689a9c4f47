import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { daemonOperations } from '@millrace/contract/daemon';
import { openApiDocument } from '@millrace/contract/documents';
import { systemClock } from '@millrace/kit/clock';
import {
  schemasOf,
  operationsOf,
  type OpenApiDocument,
  type OperationDescription,
} from '@millrace/kit/http';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { buildDashboard } from '../../dashboard/scripts/build.mjs';
import { contractDifferences, onLoopback } from '../../kit/test/http/contract-check.js';
import { fail } from '../src/core/api.js';
import { DashboardSite } from '../src/dashboard/site.js';
import { Authenticator } from '../src/server/access/authenticator.js';
import { Logins, Throttle } from '../src/server/access/logins.js';
import { Tokens } from '../src/server/access/tokens.js';
import { daemonApp } from '../src/server/app.js';
import { expectProblem, expectSchema, type ApiRequest, type Reply } from './support/client.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';
import { FakeUpstream } from './support/fake-upstream.js';
import { seedNotes, seedQuestion } from './support/seed.js';
import { callbackSecret, signedTask } from './support/signed-task.js';
import { WorkbenchDaemon } from './support/workbench.js';

const whole = openApiDocument('daemon') as unknown as OpenApiDocument;
const operations = operationsOf(whole);
const schemas = schemasOf(whole);

const token = 'full-token-of-the-contract-test';
const readOnlyToken = 'reading-token-of-the-contract-test';
const bearer = (value: string) => ({ authorization: `Bearer ${value}` });

let open: TestDaemon;
let closed: TestDaemon;
let throttled: TestDaemon;
let quiet: TestDaemon;
let upstream: FakeUpstream;

beforeAll(async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-contract-'));
  const clis = new FakeClis(join(home, 'bin'));
  const { site } = await buildDashboard();
  good['getDashboardAsset'] = { path: `/assets/${readdirSync(join(site, 'assets'))[0]!}` };
  clis.addEmpty('claude', 'gemini');
  clis.add('tmux', slowTmux);
  const [note] = await seedNotes(home, ['a note']);
  good['markNoteRead'] = { method: 'POST', path: `/api/v1/inbox/${note!.id}:read` };
  const question = `/api/v1/questions/${(await seedQuestion(home)).id}`;
  good['listQuestions'] = { path: '/api/v1/questions?status=closed&limit=5' };
  good['getQuestion'] = { path: question };
  good['waitForQuestion'] = { method: 'POST', path: `${question}:wait`, body: {} };
  const body = { option_id: '1' };
  good['answerQuestion'] = { method: 'POST', path: `${question}:answer`, body };
  upstream = await FakeUpstream.start();
  const upstreams = { 'queue-url': upstream.url, 'database-url': upstream.url };
  const guarded = { token, 'read-only-token': readOnlyToken };
  [open, closed, throttled, quiet] = await Promise.all([
    startDaemon({
      home,
      path: clis.path,
      flags: { ...upstreams, 'queue-callback-secret': callbackSecret },
    }),
    startDaemon({ flags: guarded }),
    startDaemon({ flags: guarded }),
    startDaemon({ flags: { 'api-docs': 'off', savings: 'off', insights: 'off' } }),
  ]);
  const agent = { prompt: 'x', backend: 'claude', driver: 'headless', cwd: home };
  const spawned = await open.api.send({ method: 'POST', path: '/api/v1/spawn', body: agent });
  const doomed = await open.api.send({ ...spawnRequest, body: agent });
  const { id } = spawned.json;
  for (const each of [id, doomed.json.id]) await ended(each);
  const newQuestion = { session_id: id, title: 'Which one?' };
  good['createQuestion'] = { method: 'POST', path: '/api/v1/questions', body: newQuestion };
  Object.assign(good, sessionRequests(id), { spawnSession: { ...spawnRequest, body: agent } });
  good['deleteSession'] = { method: 'DELETE', path: `/api/v1/sessions/${doomed.json.id}` };
  good['setForceCompact'] = {
    method: 'PATCH',
    path: `/api/v1/sessions/${spawned.json.id}/force-compact`,
    body: { state: 'on' },
  };
  good['receiveQueueTask'] = signedTask(JSON.stringify(agent));
  await makePipelines();
  await makePlans();
  const { code } = await open.api.ok('POST', '/api/v1/login-codes');
  good['logIn'] = { method: 'POST', path: '/api/v1/login', body: { code } };
});
afterAll(async () => {
  await Promise.all([open, closed, throttled, quiet].map((daemon) => daemon.dispose()));
  await upstream.close();
});

/** A tmux that takes its time to start something: meanwhile the session is spawning. */
const slowTmux = `
  if (args.includes('new-session')) return setTimeout(() => process.exit(1), 3000);
  console.error('no server running');
  process.exitCode = 1;`;

const spawnRequest = { method: 'POST', path: '/api/v1/spawn' };

function sessionRequests(id: string): Record<string, ApiRequest> {
  const path = `/api/v1/sessions/${id}`;
  return {
    listSessions: { path: '/api/v1/sessions' },
    getSession: { path },
    getSessionOutput: { path: `${path}/output?after=0&limit=10` },
    sendToSession: { method: 'POST', path: `${path}:send`, body: { text: 'Go on.' } },
    stopSession: { method: 'POST', path: `${path}:stop` },
    waitForSession: { method: 'POST', path: `${path}:wait`, body: { timeout_ms: 1 } },
    getSessionSummary: { path: `${path}/summary` },
    restartSession: { method: 'POST', path: `${path}:restart` },
    serveSession: { method: 'POST', path: `${path}:serve` },
    getSessionScreen: { path: `${path}/screen` },
    getSessionDiff: { path: `${path}/diff?base=main` },
    ...Object.fromEntries(
      Object.entries(workbenchVerbs).map(([operation, verb]) => [
        operation,
        { method: 'POST', path: `${path}:${verb}`, body: {} },
      ]),
    ),
  };
}

/** A transcript of an answer that was given just now. */
function writeClaudeSpend(home: string): void {
  const directory = join(home, '.claude', 'projects', 'p');
  mkdirSync(directory, { recursive: true });
  const line = {
    type: 'assistant',
    timestamp: new Date().toISOString(),
    sessionId: 's1',
    cwd: home,
    requestId: 'r1',
    message: {
      id: 'm1',
      model: 'claude-opus-4-5',
      usage: { input_tokens: 100_000, output_tokens: 1_000 },
    },
  };
  writeFileSync(join(directory, 's1.jsonl'), `${JSON.stringify(line)}\n`);
}

/** Pipelines that nobody started, one for each thing to do with them. */
async function makePipelines(): Promise<void> {
  const jobs = [{ id: 'a', prompt: 'x', backend: 'claude' }];
  const create = { method: 'POST', path: '/api/v1/pipelines', body: { name: 'n', jobs } };
  const waiting = { ...create, body: { ...create.body, start: false } };
  const [one, other] = [await open.api.send(waiting), await open.api.send(waiting)];
  Object.assign(good, {
    createPipeline: create,
    listPipelines: { path: '/api/v1/pipelines' },
    getPipeline: { path: `/api/v1/pipelines/${one.json.id}` },
    startPipeline: { method: 'POST', path: `/api/v1/pipelines/${one.json.id}:start` },
    cancelPipeline: { method: 'POST', path: `/api/v1/pipelines/${other.json.id}:cancel` },
  });
}

/** Plans of tasks for people, one for each thing to do with them; nothing races. */
async function makePlans(): Promise<void> {
  const tasks = [{ key: 'a', assignee: 'person' }];
  const create = { method: 'POST', path: '/api/v1/plans', body: { title: 'n', tasks } };
  const paths = [];
  for (let n = 0; n < 3; n++) paths.push(`/api/v1/plans/${(await open.api.send(create)).json.id}`);
  for (const path of paths.slice(0, 2)) {
    const ready = async () =>
      expect((await open.api.ok('GET', path)).tasks[0].status).toBe('ready');
    await vi.waitFor(ready, { timeout: 60_000, interval: 100 });
  }
  const [one, other, third] = paths;
  const post = { method: 'POST' };
  Object.assign(good, {
    createPlan: create,
    listPlans: { path: '/api/v1/plans' },
    getPlan: { path: one },
    pickSession: { ...post, path: `${one}/tasks/a:pick`, body: { session_id: 'x' } },
    claimPlanTask: { ...post, path: `${one}/tasks/a:claim`, body: { by: 'ada' } },
    completePlanTask: { ...post, path: `${other}/tasks/a:complete`, body: {} },
    cancelPlan: { ...post, path: `${third}:cancel` },
    listReadyTasks: { path: '/api/v1/ready-tasks' },
  });
}

const done = { status: 'done' };

async function ended(id: string): Promise<void> {
  await vi.waitFor(
    async () => expect(await open.api.ok('GET', `/api/v1/sessions/${id}`)).toMatchObject(done),
    { timeout: 60_000, interval: 100 },
  );
}

const planActs = [
  ['pickSession', 'pick'],
  ['claimPlanTask', 'claim'],
  ['completePlanTask', 'complete'],
] as const;

const workbenchVerbs = {
  commitSession: 'commit',
  pushSession: 'push',
  openPullRequest: 'open-pr',
  mergeSession: 'merge',
  rebaseSession: 'rebase',
};

/** What is answered otherwise than with 200; conversations and workbench have tests of their own. */
const answers: Record<string, number> = {
  getSessionDiff: 409,
  commitSession: 409,
  pushSession: 409,
  openPullRequest: 409,
  mergeSession: 409,
  rebaseSession: 409,
  spawnSession: 201,
  sendToSession: 409,
  serveSession: 409,
  getSessionScreen: 409,
  answerQuestion: 409,
  createQuestion: 409,
  createPipeline: 201,
  createPlan: 201,
  pickSession: 409,
  receiveQueueTask: 202,
};

/** A request of each operation that is answered well. */
const mcpHeaders = { accept: 'application/json, text/event-stream' };
const good: Record<string, ApiRequest> = {
  getHealth: { path: '/healthz' },
  getDocs: { path: '/api/docs' },
  getOpenapi: { path: '/api/docs/openapi.yaml' },
  getDocsAsset: { path: '/api/docs/assets/swagger-ui.css' },
  listBackends: { path: '/api/v1/backends' },
  getUsage: { path: '/api/v1/usage?refresh=true' },
  rescanBackends: { method: 'POST', path: '/api/v1/backends/rescan' },
  setDefaultBackend: { method: 'PUT', path: '/api/v1/backends/default', body: { id: 'claude' } },
  setThinkingMode: {
    method: 'PUT',
    path: '/api/v1/backends/thinking-mode',
    body: { mode: 'local_only' },
  },
  updateBackend: {
    method: 'PATCH',
    path: '/api/v1/backends/claude',
    body: { tier: 'subscription' },
  },
  getSpend: { path: '/api/v1/spend' },
  getUsageBlocks: { path: '/api/v1/usage/blocks?backend=codex' },
  getUsageValue: { path: '/api/v1/usage/value' },
  getPrometheusMetrics: { path: '/metrics' },
  backupDaemon: { path: '/api/v1/backup' },
  getInsights: { path: '/api/v1/insights?since=30d' },
  getSavings: { path: '/api/v1/savings?since=7d&bucket=day&samples=1' },
  think: { method: 'POST', path: '/api/v1/think', body: { prompt: 'What is a millrace?' } },
  getMetrics: { path: '/api/v1/metrics' },
  getMetricsHistory: { path: '/api/v1/metrics/history?since=6h&step=5m' },
  listBranches: { path: '/api/v1/collab/branches?refresh=true' },
  getBoard: { path: '/api/v1/board' },
  listInbox: { path: '/api/v1/inbox?unread=true&limit=5' },
  streamEvents: { path: '/api/v1/events' },
  createLoginCode: { method: 'POST', path: '/api/v1/login-codes' },
  logOut: { method: 'POST', path: '/api/v1/logout' },
  getConfig: { path: '/api/v1/config' },
  updateConfig: {
    method: 'PATCH',
    path: '/api/v1/config',
    body: { values: { 'tokens.warn': '150k' } },
  },
  getDashboard: { path: '/' },
  readQueueServer: { path: '/api/v1/proxy/queue/v1/admin/queues' },
  callQueueServer: {
    method: 'POST',
    path: '/api/v1/proxy/queue/v1/queues/mail/dlq:purge',
    body: { filter: {}, dry_run: true },
  },
  putToQueueServer: {
    method: 'PUT',
    path: '/api/v1/proxy/queue/v1/admin/queues/mail/config',
    body: { callback: { url: 'http://127.0.0.1:9/run' } },
  },
  patchQueueServer: {
    method: 'PATCH',
    path: '/api/v1/proxy/queue/v1/tasks/01K9ZT6A8B0C2D4E6F8G1H3J5K',
    body: { priority: 0 },
  },
  deleteFromQueueServer: {
    method: 'DELETE',
    path: '/api/v1/proxy/queue/v1/queues/mail/schedules/nightly',
  },
  getServers: { path: '/api/v1/servers' },
  readDatabase: { path: '/api/v1/proxy/db/v1/admin/replication' },
  callDatabase: { method: 'POST', path: '/api/v1/proxy/db/v1/people/records:find', body: {} },
  deleteFromDatabase: { method: 'DELETE', path: '/api/v1/proxy/db/v1/people/records/1' },
  postMcp: {
    method: 'POST',
    path: '/mcp',
    headers: mcpHeaders,
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  },
};

const seen = new Set<string>();

async function expectRefusal(
  daemon: TestDaemon,
  operation: OperationDescription,
  code: string,
  request: ApiRequest,
): Promise<Reply> {
  const reply = await daemon.api.send(request);
  return expectRefusedReply(operation, code, reply);
}

function expectRefusedReply(operation: OperationDescription, code: string, reply: Reply): Reply {
  expect([operation.id, code, reply.json?.code]).toEqual([operation.id, code, code]);
  expectProblem(reply);
  expect(operation.codes).toContain(code);
  expect(operation.responses.map(({ status }) => status)).toContain(reply.status);
  seen.add(`${operation.id} ${code}`);
  return reply;
}

describe('every operation that is served', () => {
  test.each(operations.map((operation) => [operation.id, operation] as const))(
    '%s answers as the contract says',
    async (id, operation) => {
      const reply = await open.api.send(good[id]!);
      const usual = answers[id] ?? 200;
      expect([id, reply.status, reply.text]).toEqual([id, usual, reply.text]);
      const type = String(reply.headers['content-type']).split(';')[0];
      const { contents } = operation.responses.find(({ status }) => status === usual)!;
      const content = contents.find(({ mediaType }) => mediaType === type);
      expect(content, `${type} is documented`).toBeDefined();
      if (reply.json === undefined) return;
      const check = schemas.at(content!.pointer!);
      expect(check.accepts(reply.json) ? [] : check.faults(reply.json)).toEqual([]);
      expect(reply.headers['x-content-type-options']).toBe('nosniff');
      expect(reply.headers['cache-control']).toBe('no-store');
    },
  );

  test.each(operations.map((operation) => [operation.id, operation] as const))(
    '%s refuses as the contract says',
    async (id, operation) => {
      const request = good[id]!;
      const { headers = {} } = request;
      const refuse = (daemon: TestDaemon, code: string, change: Partial<ApiRequest>) =>
        expectRefusal(daemon, operation, code, { ...request, ...change });

      if (request.method === undefined) {
        const path = `${request.path}${request.path.includes('?') ? '&' : '?'}surprise=1`;
        const { status } = await open.api.send({ ...request, path });
        expect([id, status]).toEqual([id, status < 400 || status === 409 ? status : 400]);
      }
      await refuse(open, 'FORBIDDEN', { headers: { ...headers, host: 'evil.example' } });
      await refuse(open, 'FORBIDDEN', { headers: { ...headers, origin: 'https://evil.example' } });
      if (!operation.isPublic) {
        const stranger = await refuse(closed, 'UNAUTHENTICATED', {});
        expect(stranger.headers['www-authenticate']).toContain('Bearer');
        const { reply: slowed } = await throttled.api.guessTokens(request);
        expectRefusedReply(operation, 'TOO_MANY_ATTEMPTS', slowed);
        expect(Number(slowed.headers['retry-after'])).toBeGreaterThan(0);
      }
      if (operation.extensions['x-access'] === 'write') {
        await refuse(closed, 'FORBIDDEN', { headers: { ...headers, ...bearer(readOnlyToken) } });
      }
      // What is not signed is refused for that, whatever else is wrong with it.
      if (operation.body && id !== 'receiveQueueTask') {
        if (!operation.takesRawBody) {
          await refuse(open, 'INVALID_REQUEST', { body: { nope: 1 } });
          const malformed = { ...(request.body as object), text: '\ud800' };
          const { json } = await refuse(open, 'INVALID_REQUEST', { body: malformed });
          expect(json.detail).toContain('lone surrogate');
        }
        await refuse(open, 'INVALID_REQUEST', {
          body: '{',
          headers: { ...headers, 'content-type': 'application/json' },
        });
        await refuse(open, 'UNSUPPORTED_MEDIA_TYPE', {
          body: JSON.stringify(request.body),
          headers: { ...headers, 'content-type': 'text/plain' },
        });
        await refuse(open, 'PAYLOAD_TOO_LARGE', {
          body: ' '.repeat(operation.bodyLimitBytes! + 1),
          headers: { ...headers, 'content-type': 'application/json' },
        });
      }
      if (!operation.body && request.method !== undefined) {
        await refuse(open, 'UNSUPPORTED_MEDIA_TYPE', {
          body: 'a=b',
          headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
        });
      }
      if (operation.codes.includes('FEATURE_DISABLED')) {
        await refuse(quiet, 'FEATURE_DISABLED', {});
      }
      if (operation.tags.includes('proxy')) {
        const [, end] = /^(\/api\/v1\/proxy\/\w+\/)/.exec(request.path)!;
        await refuse(open, 'NOT_FOUND', { path: `${end}v1/admin/secrets` });
        await upstream.answering(401, () => refuse(open, 'UPSTREAM_REFUSED', {}));
        await upstream.answering('cut', () => refuse(open, 'UPSTREAM_UNREACHABLE', {}));
      }
      if (operation.codes.includes('SAVINGS_DISABLED')) {
        await refuse(quiet, 'SAVINGS_DISABLED', {});
      }
    },
  );

  test('what only some of them refuse', async () => {
    const refuse = (id: string, code: string, request: ApiRequest) =>
      expectRefusal(
        open,
        operations.find((each) => each.id === id)!,
        code,
        request,
      );
    const guess = { ...good['logIn']!, body: { code: 'a-guess' } };
    await refuse('logIn', 'UNAUTHENTICATED', guess);
    for (let n = 0; n < 9; n++) await open.api.send(guess);
    await refuse('logIn', 'TOO_MANY_ATTEMPTS', guess);
    await refuse('rescanBackends', 'INVALID_REQUEST', {
      ...good['rescanBackends']!,
      path: '/api/v1/backends/rescan?acp=perhaps',
    });
    await refuse('getUsage', 'INVALID_REQUEST', { path: '/api/v1/usage?refresh=perhaps' });
    await refuse('getUsage', 'INVALID_REQUEST', { path: '/api/v1/usage?fresh=true' });
    await refuse('getUsageBlocks', 'INVALID_REQUEST', { path: '/api/v1/usage/blocks?backend=' });
    for (const query of ['unread=perhaps', 'limit=0', 'limit=1001', 'limit=ten', 'read=true']) {
      await refuse('listInbox', 'INVALID_REQUEST', { path: `/api/v1/inbox?${query}` });
    }
    for (const id of ['nobody', 'a%20b', '%2e%2e']) {
      await refuse('setForceCompact', 'SESSION_NOT_FOUND', {
        ...good['setForceCompact']!,
        path: `/api/v1/sessions/${id}/force-compact`,
      });
      const path = `/api/v1/inbox/${id}:read`;
      await refuse('markNoteRead', 'NOTE_NOT_FOUND', { method: 'POST', path });
    }
    for (const query of ['status=lost', 'limit=0', 'limit=1001', 'read=true']) {
      await refuse('listQuestions', 'INVALID_REQUEST', { path: `/api/v1/questions?${query}` });
    }
    const answer = good['answerQuestion']!;
    for (const id of ['nobody', 'a%20b', '%2e%2e']) {
      const path = `/api/v1/questions/${id}`;
      await refuse('getQuestion', 'QUESTION_NOT_FOUND', { path });
      await refuse('answerQuestion', 'QUESTION_NOT_FOUND', { ...answer, path: `${path}:answer` });
      const wait = { ...good['waitForQuestion']!, path: `${path}:wait` };
      await refuse('waitForQuestion', 'QUESTION_NOT_FOUND', wait);
    }
    for (const body of [{}, { option_id: '1', text: 'x' }, { option: '1' }, { option_id: 1 }]) {
      await refuse('answerQuestion', 'INVALID_REQUEST', { ...answer, body });
    }
    await refuse('answerQuestion', 'QUESTION_CLOSED', answer);
    for (const body of [{ timeout_ms: 600_001 }, { timeout_ms: -1 }, { wait: 1 }]) {
      await refuse('waitForQuestion', 'INVALID_REQUEST', { ...good['waitForQuestion']!, body });
      await refuse('waitForSession', 'INVALID_REQUEST', { ...good['waitForSession']!, body });
    }
    const creation = good['createQuestion']!;
    for (const body of [{}, { title: '' }, { title: 'x' }, { title: 'x', options: [1] }]) {
      await refuse('createQuestion', 'INVALID_REQUEST', { ...creation, body });
    }
    const nobody = { session_id: 'nobody', title: 'x' };
    await refuse('createQuestion', 'SESSION_NOT_FOUND', { ...creation, body: nobody });
    await refuse('createQuestion', 'SESSION_STATE', creation);
    for (const body of [{ option_id: '9' }, { text: 'yes' }]) {
      await refuse('answerQuestion', 'UNKNOWN_OPTION', { ...answer, body });
    }
    const config = good['updateConfig']!;
    const fixed = { values: { metrics: false } };
    await refuse('updateConfig', 'SETTING_NOT_EDITABLE', { ...config, body: fixed });
    const stale = { revision: 'another', values: {} };
    await refuse('updateConfig', 'CONFIG_CONFLICT', { ...config, body: stale });
    writeFileSync(join(open.home, 'config.yaml'), 'tokens: {warn: []}\n');
    await refuse('updateConfig', 'CONFIG_NOT_WRITABLE', config);
    rmSync(join(open.home, 'config.yaml'));
    await refuse('getInsights', 'INVALID_REQUEST', { path: '/api/v1/insights?since=soon' });
    for (const query of ['since=yesterday', 'since=0h', 'samples=perhaps', 'from=7d']) {
      await refuse('getSavings', 'INVALID_REQUEST', { path: `/api/v1/savings?${query}` });
    }
    await refuse('getDocsAsset', 'NOT_FOUND', { path: '/api/docs/assets/nope.js' });
    await refuse('getDocsAsset', 'NOT_FOUND', { path: '/api/docs/assets/..%2Fpackage.json' });
    await refuse('getDashboardAsset', 'NOT_FOUND', { path: '/assets/nope.js' });
    await refuse('getDashboardAsset', 'NOT_FOUND', { path: '/assets/..%2Findex.html' });
    for (const query of ['since=soon', 'step=0']) {
      const path = `/api/v1/metrics/history?${query}`;
      await refuse('getMetricsHistory', 'INVALID_REQUEST', { path });
    }
    const perhaps = { path: '/api/v1/collab/branches?refresh=perhaps' };
    await refuse('listBranches', 'INVALID_REQUEST', perhaps);
    await refuse('postMcp', 'NOT_ACCEPTABLE', { ...good['postMcp']!, headers: {} });
    const patch = good['updateBackend']!;
    for (const id of ['nobody', 'a%20b', '%2e%2e']) {
      await refuse('updateBackend', 'BACKEND_NOT_FOUND', {
        ...patch,
        path: `/api/v1/backends/${id}`,
      });
    }
    for (const body of [{ tier: 'local' }, { tier: 'gold' }, { tier: null }, { enabled: 'yes' }]) {
      await refuse('updateBackend', 'INVALID_REQUEST', { ...patch, body });
    }
    await refuse('updateBackend', 'INVALID_REQUEST', {
      ...patch,
      path: '/api/v1/backends/local',
    });
    const put = good['setDefaultBackend']!;
    await refuse('setDefaultBackend', 'BACKEND_NOT_FOUND', { ...put, body: { id: 'nobody' } });
    await refuse('setDefaultBackend', 'BACKEND_NOT_ELIGIBLE', { ...put, body: { id: 'local' } });
  });

  test('what the operations of sessions refuse', async () => {
    const operation = (id: string) => operations.find((each) => each.id === id)!;
    const refuse = (id: string, code: string, request: ApiRequest) =>
      expectRefusal(open, operation(id), code, request);
    for (const id of Object.keys(sessionRequests('x')).filter((each) => each !== 'listSessions')) {
      const request = good[id]!;
      const path = request.path.replace(/\/sessions\/\w+/, '/sessions/nobody');
      await refuse(id, 'SESSION_NOT_FOUND', { ...request, path });
    }
    await refuse('deleteSession', 'SESSION_NOT_FOUND', {
      method: 'DELETE',
      path: '/api/v1/sessions/nobody',
    });
    const output = `${good['getSession']!.path}/output`;
    for (const query of ['after=-1', 'after=x', 'limit=0', 'limit=5001', 'before=1']) {
      await refuse('getSessionOutput', 'INVALID_REQUEST', { path: `${output}?${query}` });
    }
    await refuse('sendToSession', 'SESSION_STATE', good['sendToSession']!);

    const { body } = good['spawnSession']! as { body: object };
    const spawnWith = (change: object, headers = {}) => ({
      ...spawnRequest,
      headers,
      body: { ...body, ...change },
    });
    await refuse('spawnSession', 'BACKEND_NOT_FOUND', spawnWith({ backend: 'nobody' }));
    await refuse('spawnSession', 'BACKEND_NOT_ELIGIBLE', spawnWith({ backend: 'local' }));
    const key = { 'idempotency-key': 'once' };
    const first = await open.api.send(spawnWith({}, key));
    expect([first.status, first.headers['idempotent-replayed']]).toEqual([201, undefined]);
    const again = await open.api.send(spawnWith({}, key));
    expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true']);
    expect(again.json.id).toBe(first.json.id);
    await refuse('spawnSession', 'IDEMPOTENCY_CONFLICT', spawnWith({ name: 'other' }, key));

    const slow = await open.api.send(spawnWith({ driver: 'tmux' }));
    const path = `/api/v1/sessions/${slow.json.id}`;
    await refuse('serveSession', 'SESSION_STATE', good['serveSession']!);
    const since = { path: '/api/v1/backup?since_seq=999999999' };
    await refuse('backupDaemon', 'INVALID_REQUEST', since);
    await refuse('getSessionScreen', 'SESSION_STATE', good['getSessionScreen']!);
    await refuse('restartSession', 'SESSION_STATE', { method: 'POST', path: `${path}:restart` });
    await open.api.ok('PATCH', '/api/v1/backends/claude', { enabled: false });
    await refuse('restartSession', 'BACKEND_NOT_ELIGIBLE', good['restartSession']!);
    await open.api.ok('PATCH', '/api/v1/backends/claude', { enabled: true });
  });

  test('what pipelines, events and the queue’s callback refuse', async () => {
    const refuse = (id: string, code: string, request: ApiRequest) =>
      expectRefusal(
        open,
        operations.find((each) => each.id === id)!,
        code,
        request,
      );
    for (const id of ['nobody', 'a%20b', '%2e%2e']) {
      const path = `/api/v1/pipelines/${id}`;
      await refuse('getPipeline', 'PIPELINE_NOT_FOUND', { path });
      const post = { method: 'POST' };
      await refuse('startPipeline', 'PIPELINE_NOT_FOUND', { ...post, path: `${path}:start` });
      await refuse('cancelPipeline', 'PIPELINE_NOT_FOUND', { ...post, path: `${path}:cancel` });
    }
    const create = good['createPipeline']!;
    const jobs = [{ id: 'a', prompt: 'x', backend: 'nobody' }];
    await refuse('createPipeline', 'BACKEND_NOT_FOUND', { ...create, body: { name: 'n', jobs } });
    const { json } = await open.api.send(create);
    const path = `/api/v1/pipelines/${json.id}`;
    await vi.waitFor(async () => expect(await open.api.ok('GET', path)).toMatchObject(done), {
      timeout: 60_000,
      interval: 100,
    });
    for (const act of ['start', 'cancel']) {
      await refuse(`${act}Pipeline`, 'PIPELINE_STATE', { method: 'POST', path: `${path}:${act}` });
    }
    for (const id of ['nobody', 'a%20b', '%2e%2e']) {
      const plan = `/api/v1/plans/${id}`;
      await refuse('getPlan', 'PLAN_NOT_FOUND', { path: plan });
      await refuse('cancelPlan', 'PLAN_NOT_FOUND', { method: 'POST', path: `${plan}:cancel` });
      for (const [operation, act] of planActs) {
        const { body } = good[operation]!;
        const request = { method: 'POST', path: `${plan}/tasks/a:${act}`, body };
        await refuse(operation, 'PLAN_NOT_FOUND', request);
      }
    }
    const over = good['completePlanTask']!.path.replace(/\/tasks.*/, '');
    await refuse('cancelPlan', 'PLAN_STATE', { method: 'POST', path: `${over}:cancel` });
    for (const [operation, act] of planActs) {
      const { body } = good[operation]!;
      const request = { method: 'POST', path: `${over}/tasks/a:${act}`, body };
      await refuse(operation, 'PLAN_STATE', request);
    }
    await refuse('streamEvents', 'INVALID_REQUEST', { path: '/api/v1/events?since=1' });

    const id = 'receiveQueueTask';
    const wrong = { ...signedTask('{}'), body: '{} ' };
    await refuse(id, 'BAD_SIGNATURE', wrong);
    await refuse(id, 'INVALID_REQUEST', signedTask('{'));
    await refuse(id, 'INVALID_REQUEST', signedTask('{"nope":1}'));
    await refuse(id, 'PAYLOAD_TOO_LARGE', signedTask(' '.repeat(8_388_609), 'text/plain'));
    const on = (backend: string) => signedTask(JSON.stringify({ prompt: 'x', backend }));
    await refuse(id, 'BACKEND_NOT_FOUND', on('nobody'));
    await refuse(id, 'BACKEND_NOT_ELIGIBLE', on('local'));
  });

  test('a name that several ended sessions have is ambiguous everywhere', async () => {
    const { body } = good['spawnSession']! as { body: object };
    const spawn = { ...spawnRequest, body: { ...body, name: 'twin' } };
    for (let each = 0; each < 2; each++) await ended((await open.api.send(spawn)).json.id);
    for (const operation of operations) {
      if (!operation.codes.includes('SESSION_AMBIGUOUS')) continue;
      const request = good[operation.id]!;
      const path = request.path.replace(/sessions\/\w+/, 'sessions/twin');
      const isAsking = operation.id === 'createQuestion';
      const question = { session_id: 'twin', title: 'Which one?' };
      const named = { ...request, path, ...(isAsking && { body: question }) };
      const reply = await expectRefusal(open, operation, 'SESSION_AMBIGUOUS', named);
      expect(reply.json.candidates).toMatchObject([{ name: 'twin' }, { name: 'twin' }]);
    }
  });

  test('what the workbench refuses', async () => {
    const bench = await WorkbenchDaemon.start();
    const refuse = (id: string, code: string, path: string, body: object = {}) => {
      const request = id === 'getSessionDiff' ? { path } : { method: 'POST', path, body };
      const operation = operations.find((each) => each.id === id)!;
      return expectRefusal(bench.daemon, operation, code, request);
    };
    const outside = { prompt: 'x', backend: 'claude', driver: 'headless', cwd: bench.daemon.home };
    const { json } = await bench.daemon.api.send({ ...spawnRequest, body: outside });
    const nowhere = `/api/v1/sessions/${json.id}`;
    await vi.waitFor(
      async () => expect(await bench.daemon.api.ok('GET', nowhere)).toMatchObject(done),
      { timeout: 60_000, interval: 100 },
    );
    const { path, work } = await bench.agent('topic');
    await refuse('openPullRequest', 'GH_NOT_INSTALLED', `${path}:open-pr`);
    bench.clis.add('gh', 'process.exitCode = 1;');
    await refuse('openPullRequest', 'GIT_FAILED', `${path}:open-pr`);
    await refuse('getSessionDiff', 'INVALID_REQUEST', `${path}/diff?base=nope`);
    await refuse('getSessionDiff', 'NO_WORKSPACE', `${nowhere}/diff`);
    await refuse('mergeSession', 'WORKSPACE_DIRTY', `${path}:merge`);
    await refuse('rebaseSession', 'WORKSPACE_DIRTY', `${path}:rebase`);
    await bench.daemon.api.ok('POST', `${path}:commit`, {});
    await refuse('commitSession', 'NO_CHANGES', `${path}:commit`);
    await refuse('mergeSession', 'NO_CHANGES', `${path}:merge`, { base: 'topic' });
    bench.conflict(work, 'first.txt');
    await refuse('mergeSession', 'MERGE_CONFLICT', `${path}:merge`);
    await refuse('rebaseSession', 'MERGE_CONFLICT', `${path}:rebase`);
    expect(() => work.git('merge', 'main')).toThrow();
    await refuse('commitSession', 'MERGE_CONFLICT', `${path}:commit`);
    work.git('merge', '--abort');
    for (const [id, verb] of Object.entries(workbenchVerbs)) {
      await refuse(id, 'SESSION_NOT_FOUND', `/api/v1/sessions/nobody:${verb}`);
      await refuse(id, 'NO_WORKSPACE', `${nowhere}:${verb}`);
    }
    await refuse('getSessionDiff', 'SESSION_NOT_FOUND', '/api/v1/sessions/nobody/diff');
    // Git itself fails: its index is not one.
    writeFileSync(work.git('rev-parse', '--path-format=absolute', '--git-path', 'index'), 'broken');
    await refuse('getSessionDiff', 'GIT_FAILED', `${path}/diff`);
    for (const verb of ['commit', 'push', 'merge', 'rebase']) {
      await refuse(`${verb}Session`, 'GIT_FAILED', `${path}:${verb}`);
    }
    bench.clis.add('claude', 'setInterval(() => {}, 1000);');
    const busy = await bench.daemon.api.send({ ...spawnRequest, body: outside });
    for (const verb of ['commit', 'merge', 'rebase']) {
      const busyPath = `/api/v1/sessions/${busy.json.id}:${verb}`;
      await refuse(`${verb}Session`, 'SESSION_STATE', busyPath);
    }
    await bench.daemon.api.ok('DELETE', `/api/v1/sessions/${busy.json.id}`);
    await bench.daemon.dispose();
  });

  test('a spawn over the budget asks for confirmation, with the figures', async () => {
    const home = mkdtempSync(join(tmpdir(), 'mr-budget-'));
    const clis = new FakeClis(join(home, 'bin'));
    clis.addEmpty('claude');
    writeClaudeSpend(home);
    const flags = {
      'tokens-budget-daily-usd': '0.01',
      'queue-callback-secret': callbackSecret,
    };
    const capped = await startDaemon({ home, path: clis.path, flags });
    const spawning = operations.find(({ id }) => id === 'spawnSession')!;
    const agent = { prompt: 'x', backend: 'claude', driver: 'headless', cwd: home };
    const request = { ...spawnRequest, body: agent };
    const { json } = await expectRefusal(capped, spawning, 'BUDGET_CONFIRMATION_REQUIRED', request);
    expectSchema('BudgetConfirmation', json);
    expect(json.verdict).toMatchObject({ over: true, cap_daily: 0.01, cap_weekly: 0 });
    expect(json.verdict.daily_usd).toBeGreaterThan(0.01);
    const receiving = operations.find(({ id }) => id === 'receiveQueueTask')!;
    const task = signedTask(JSON.stringify(request.body));
    const waits = await expectRefusal(capped, receiving, 'BUDGET_EXCEEDED', task);
    expect(Number(waits.headers['retry-after'])).toBeGreaterThan(0);
    const forced = await capped.api.send({ ...request, body: { ...request.body, force: true } });
    expect(forced.status).toBe(201);
    await capped.api.ok('DELETE', `/api/v1/sessions/${forced.json.id}`);
    await capped.dispose();
  });

  test('a dashboard that is not built is not there, and says what to do', async () => {
    const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
    const app = brokenApp(world, undefined as never, new DashboardSite('/nowhere/site'));
    const answer = await onLoopback(app, (send) => send({ path: '/' }));
    const problem = JSON.parse(answer.text);
    expect([answer.status, problem.code]).toEqual([404, 'NOT_FOUND']);
    expect(problem.detail).toContain('npm run build');
    seen.add('getDashboard NOT_FOUND');
  });

  test('an agent that does not take an answer is reported', async () => {
    const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
    const stuck = { answer: () => Promise.reject(fail('SESSION_STATE', 'Not taken.')) };
    const app = brokenApp(world, stuck as never);
    const { method, path, body } = good['answerQuestion']!;
    const headers = { 'content-type': 'application/json' };
    const request = { method: method!, path, headers, body: JSON.stringify(body) };
    const answer = await onLoopback(app, (send) => send(request));
    expect([answer.status, JSON.parse(answer.text).code]).toEqual([409, 'SESSION_STATE']);
    seen.add('answerQuestion SESSION_STATE');
  });

  test('a fault of ours shows nothing of itself', async () => {
    const log = memoryLog();
    const world = { clock: systemClock, random: systemRandom, log };
    const broken = new Proxy({} as never, {
      get: () => () => {
        throw new Error('secret internals');
      },
    });
    const app = brokenApp(world, broken);
    for (const { id, codes } of operations) {
      if (!codes.includes('INTERNAL') || neverFails.has(id)) continue;
      const { method = 'GET', path, headers, body } = good[id]!;
      const json = { 'content-type': 'application/json' };
      const isText = typeof body === 'string' || body instanceof Uint8Array;
      const answer = await onLoopback(app, (send) =>
        send({
          method,
          path,
          headers: { ...(body !== undefined && !isText && json), ...headers },
          ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
        }),
      );
      expect([id, answer.status]).toEqual([id, 500]);
      expectSchema('Problem', JSON.parse(answer.text));
      expect(answer.text).not.toContain('secret');
      seen.add(`${id} INTERNAL`);
    }
  });

  test('no code of the contract was left out above', () => {
    const promised = operations.flatMap(({ id, codes }) =>
      codes
        .filter((code) => code !== 'INTERNAL' || !neverFails.has(id))
        .map((code) => `${id} ${code}`),
    );
    expect(promised.filter((pair) => !seen.has(pair))).toEqual([]);
  });
});

/** They answer from memory, or carry what goes wrong inside the protocol's own messages. */
const neverFails = new Set([
  'getDocs',
  'getOpenapi',
  'getDocsAsset',
  'postMcp',
  'createLoginCode',
  'logIn',
  'logOut',
]);

function brokenApp(
  world: Parameters<typeof daemonApp>[0]['world'],
  broken: never,
  dashboard: Pick<DashboardSite, 'page' | 'asset'> = broken,
) {
  const nothing = { given: undefined, file: '/nowhere/token' };
  const { log } = world;
  const tokens = new Tokens({ areRequired: false, token: nothing, readOnly: nothing, log });
  const logins = new Logins({ ...world, file: '/nowhere/logins', tokenHash: () => undefined });
  const throttle = new Throttle(world.clock);
  return daemonApp({
    world,
    authenticator: new Authenticator({ tokens, throttle, logins, isLoopback: true }),
    apiDocs: true,
    context: {
      database: broken,
      backends: broken,
      thinker: broken,
      usage: broken,
      savings: broken,
      sessions: broken,
      pipelines: broken,
      plans: broken,
      events: broken,
      queueTasks: broken,
      notify: broken,
      questions: broken,
      forceCompact: () => false,
      spend: broken,
      insights: broken,
      metrics: broken,
      series: broken,
      branches: broken,
      workbench: broken,
      settings: broken,
      dashboard,
      upstreams: { queue: broken, database: broken },
    },
  });
}

test('the server and the contract list the same operations, codes and methods', async () => {
  const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
  const app = brokenApp(world, undefined as never);
  const headers = { host: 'localhost' };
  const differences = await contractDifferences(whole, app, { headers, allowsAnonymous: true });
  expect(differences).toEqual([]);
});

test('every operation of the contract is served', () => {
  const served = operations.map(({ id }) => id);
  expect(served.toSorted()).toEqual(Object.keys(daemonOperations).toSorted());
});

test('unknown paths need a token first, where one is set', async () => {
  await open.api.refused({ path: '/api/v1/nothing' }, 404, 'NOT_FOUND');
  await closed.api.refused({ path: '/api/v1/nothing' }, 401, 'UNAUTHENTICATED');
  await closed.api.refused({ path: '/mcp' }, 401, 'UNAUTHENTICATED');
  await closed.api.refused({ path: '/nothing' }, 404, 'NOT_FOUND');
  const reply = await open.api.send({ method: 'DELETE', path: '/mcp' });
  expectProblem(reply);
  expect([reply.status, reply.headers['allow']]).toEqual([405, 'POST']);
  await open.api.refused(
    { method: 'PATCH', path: '/api/v1/backends/default' },
    405,
    'METHOD_NOT_ALLOWED',
  );
});
