import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Repository } from '../src/branches/repositories.test-support.js';
import type { ApiClient } from './support/client.js';
import {
  attributes,
  Hostility,
  plainGit,
  programKeys,
  quietGit,
} from './support/hostile-repository.js';
import { WorkbenchDaemon } from './support/workbench.js';

/* The whole daemon over HTTP, beside repositories that name programs wherever git lets them. */

const tokens = { token: 'a-token-of-sixteen', 'read-only-token': 'another-one-of-20' };
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

let bench: WorkbenchDaemon;
let hostility: Hostility;
let owner: ApiClient;
let reader: ApiClient;
let session: { path: string; work: Repository };
let home: string;

/** A repository with a gitlink, a branch that changes the same file, and then the settings. */
beforeAll(async () => {
  bench = await WorkbenchDaemon.start(tokens);
  ({ home } = bench.daemon);
  owner = bench.daemon.api.withHeaders(bearer(tokens.token));
  reader = bench.daemon.api.withHeaders(bearer(tokens['read-only-token']));
  hostility = new Hostility(home);
  const { repo } = bench;
  const source = join(home, 'source');
  mkdirSync(source);
  plainGit(source, 'init', '--quiet', '--initial-branch=main');
  writeFileSync(join(source, 'f.txt'), 'one\n');
  plainGit(source, 'add', '.');
  plainGit(source, 'commit', '--quiet', '--message=one');
  const linked = plainGit(source, 'rev-parse', 'HEAD');
  const update = `!${hostility.program('gitmodules-update')}`;
  const modules = `[submodule "link"]\n\tpath = link\n\turl = ${source}\n\tupdate = ${update}\n`;
  writeFileSync(join(repo.path, '.gitmodules'), modules);
  writeFileSync(join(repo.path, '.gitattributes'), attributes);
  writeFileSync(join(repo.path, 'both.txt'), '1\n2\n3\n4\n5\n6\n7\n8\n9\n');
  repo.git('add', '.');
  repo.git('update-index', '--add', '--cacheinfo', `160000,${linked},link`);
  repo.git('commit', '--quiet', '--message=base');
  repo.git('checkout', '--quiet', '-b', 'next');
  writeFileSync(join(repo.path, 'both.txt'), 'one\n2\n3\n4\n5\n6\n7\n8\n9\n');
  repo.git('commit', '--quiet', '--message=next', 'both.txt');
  repo.git('checkout', '--quiet', 'main');
  repo.git('checkout', '--quiet', '--detach');
  hostility.infect(join(repo.path, '.git'));
  session = await bench.agent('hostile', owner);
  const at = (name: string) => join(session.work.path, name);
  hostility.nested(at('plain'), 'config');
  hostility.nested(at('included'), 'include');
  hostility.nested(at('deep/inner'), 'includeIf');
  hostility.nested(at('link'), 'config', source);
  mkdirSync(at('empty'));
  plainGit(at('empty'), 'init', '--quiet');
  hostility.infect(join(at('empty'), '.git'));
  writeFileSync(at('both.txt'), '1\n2\n3\n4\n5\n6\n7\n8\nnine\n');
});
afterAll(() => bench.daemon.dispose());

const post = (action: string, body: object = {}) =>
  owner.send({ method: 'POST', path: `${session.path}:${action}`, body });

test('a hostile repository starts an agent without running a program', () => {
  expect(hostility.ran()).toEqual([]);
  expect(existsSync(join(session.work.path, 'both.txt'))).toBe(true);
});

test('diff with the read-only token runs no program, nested repositories included', async () => {
  const diff = await reader.ok('GET', `${session.path}/diff`);
  const paths = diff.files.map(({ path }: { path: string }) => path);
  expect(paths).toEqual(['both.txt', 'deep/inner', 'included', 'made.txt', 'plain']);
  expect(hostility.ran()).toEqual([]);
});

test('sessions, board and branches run no program', async () => {
  for (const path of [session.path, '/api/v1/sessions', '/api/v1/board']) {
    await reader.ok('GET', path);
  }
  await owner.ok('GET', '/api/v1/collab/branches?refresh=true');
  expect(hostility.ran()).toEqual([]);
});

test('commit, rebase and merge run no program', async () => {
  const commit = await post('commit');
  expect(commit).toMatchObject({ status: 200, json: { file_count: 5 } });
  expect(hostility.ran()).toEqual([]);
  await reader.ok('GET', `${session.path}/diff`);
  // The commit of a nested repository has moved: it is tracked now.
  const dirty = await post('commit');
  expect(dirty).toMatchObject({ status: 409, json: { code: 'NO_CHANGES' } });
  quietGit(bench.repo.path, 'update-ref', 'refs/heads/main', 'refs/heads/next');
  expect(hostility.ran()).toEqual([]);
  // A repository without a commit cannot be committed.
  expect(await post('rebase')).toMatchObject({ json: { code: 'WORKSPACE_DIRTY' } });
  rmSync(join(session.work.path, 'empty'), { recursive: true });
  expect(await post('rebase')).toMatchObject({ status: 200, json: { commit_count: 1 } });
  expect(hostility.ran()).toEqual([]);
  for (const strategy of ['merge', 'squash', 'rebase']) {
    writeFileSync(join(session.work.path, `${strategy}.txt`), 'made\n');
    expect((await post('commit')).status).toBe(200);
    expect(await post('merge', { strategy })).toMatchObject({ status: 200 });
    expect(hostility.ran()).toEqual([]);
  }
});

/** A bare repository with every setting and hook. */
function hostileRemote(name: string): string {
  const path = join(home, name);
  plainGit(home, 'init', '--quiet', '--bare', path);
  hostility.infect(path);
  // A remote that wants this hook takes no push without it.
  plainGit(home, 'config', '--file', join(path, 'config'), '--unset', 'receive.procReceiveRefs');
  return path;
}

const config = (...args: string[]) => quietGit(bench.repo.path, 'config', ...args);
const tipOf = (path: string) => quietGit(path, 'rev-parse', 'refs/heads/hostile');

test('push with push.negotiate and an uploadpack for the address runs no program', async () => {
  hostileRemote('negotiated.git');
  const remote = join(home, 'negotiated.git');
  for (const url of ['../negotiated.git', remote, `file://${remote}`]) {
    config('remote.origin.url', url);
    config(`remote.${url}.uploadpack`, hostility.program('uploadpack'));
    config(`remote.${url}.receivepack`, hostility.program('receivepack'));
    const relative = url.startsWith('..');
    const pushed = await post('push');
    // A relative address counts from the worktree, which is one directory deeper.
    expect(pushed).toMatchObject(
      relative ? { status: 409 } : { status: 200, json: { remote: 'origin' } },
    );
    expect(hostility.ran()).toEqual([]);
  }
  expect(tipOf(remote)).toBe(quietGit(session.work.path, 'rev-parse', 'HEAD'));
});

test('push to several addresses takes each of them, without hooks of those on this machine', async () => {
  const local = hostileRemote('second.git');
  const served = await serveGit(join(home, 'served'));
  config('remote.origin.url', served.url);
  config('--replace-all', 'remote.origin.pushurl', served.url);
  config('--add', 'remote.origin.pushurl', local);
  expect(await post('push')).toMatchObject({ status: 200, json: { remote: 'origin' } });
  served.close();
  expect(tipOf(served.path)).toBe(tipOf(local));
  expect(hostility.ran()).toEqual([]);
  config('--unset-all', 'remote.origin.pushurl');
});

test.each(['vcs', 'ext', 'insteadOf', 'dash', 'helper'])(
  'push to an address that is a program (%s) is refused',
  async (how) => {
    const program = hostility.program(how);
    const url = how === 'ext' ? `ext::${program}` : how === 'helper' ? 'evil::x' : 'evil:/x';
    config('remote.origin.url', how === 'dash' ? `--receive-pack=${program}` : url);
    if (how === 'vcs') config('remote.origin.vcs', 'ext');
    if (how === 'insteadOf') config(`url.ext::${program}.insteadOf`, 'evil:');
    const refused = await post('push');
    expect(refused).toMatchObject({ status: 409, json: { code: 'GIT_FAILED' } });
    expect(hostility.ran()).toEqual([]);
    if (how === 'vcs') config('--unset', 'remote.origin.vcs');
    if (how === 'insteadOf') config('--unset', `url.ext::${program}.insteadOf`);
  },
);

test('deleting the session runs no program, and keeps a worktree with nested repositories', async () => {
  await owner.ok('DELETE', session.path);
  expect(existsSync(session.work.path)).toBe(true);
  expect(hostility.ran()).toEqual([]);
});

test('the traps work: git as a person runs it falls into them', () => {
  writeFileSync(join(session.work.path, 'both.txt'), 'other\n');
  const attempt = (...args: string[]) => {
    try {
      plainGit(session.work.path, ...args);
    } catch {
      // Programs that only pass their input on make many commands fail.
    }
    return hostility.ran();
  };
  expect(programKeys.length).toBeGreaterThan(70);
  expect(attempt('status')).toContain('core.fsmonitor');
  expect(attempt('-c', 'core.fsmonitor=false', 'add', '--all')).toEqual(
    expect.arrayContaining([expect.stringContaining('filter.evil.')]),
  );
  expect(attempt('update-ref', 'refs/heads/x', 'HEAD')).toContain('reference-transaction');
  expect(attempt('diff', 'HEAD^')).not.toEqual([]);
});

/** `git http-backend` behind a server on loopback. */
async function serveGit(root: string): Promise<{ url: string; path: string; close(): void }> {
  const path = join(root, 'mill.git');
  mkdirSync(root);
  plainGit(root, 'init', '--quiet', '--bare', path);
  plainGit(path, 'config', 'http.receivepack', 'true');
  const server: Server = createServer((request, response) => {
    const [pathInfo = '', query = ''] = (request.url ?? '').split('?');
    const environment = {
      PATH: process.env['PATH'],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: pathInfo,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      REMOTE_USER: 'ada',
    };
    const child = spawn('git', ['http-backend'], { env: environment });
    request.pipe(child.stdin);
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('close', () => {
      const answer = Buffer.concat(chunks);
      const end = answer.indexOf('\r\n\r\n');
      for (const line of answer.subarray(0, end).toString().split('\r\n')) {
        const [name = '', value = ''] = line.split(': ');
        if (name === 'Status') response.statusCode = Number.parseInt(value, 10);
        else response.setHeader(name, value);
      }
      response.end(answer.subarray(end + 4));
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as { port: number };
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}/mill.git`, path, close };
}
