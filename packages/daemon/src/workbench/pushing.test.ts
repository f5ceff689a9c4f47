import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Repository } from '../branches/repositories.test-support.js';
import { Bench } from './workbench.test-support.js';

let bench: Bench;
let remote: Repository;
beforeEach(async () => {
  bench = await Bench.open();
  const path = join(bench.shop.directory, 'remote.git');
  bench.repo.git('clone', '--quiet', '--bare', bench.repo.path, path);
  remote = new Repository(path);
  bench.repo.git('remote', 'add', 'origin', path);
});
afterEach(() => bench.close());

const push = (params = {}) => bench.workbench.push(bench.session, params);

test('push: the branch is on the remote, and tracks it', async () => {
  const commit = bench.work.commit('mine');
  expect(await push()).toEqual({
    session_id: bench.session.id,
    branch: 'topic',
    remote: 'origin',
    commit,
  });
  expect(remote.git('rev-parse', 'topic')).toBe(commit);
  expect(bench.work.git('rev-parse', 'topic@{upstream}')).toBe(commit);
});

test('push: a branch that was rebased needs force', async () => {
  bench.work.commit('mine');
  await push();
  bench.work.git('commit', '--quiet', '--amend', '--message=other');
  await expect(push()).rejects.toMatchObject({
    code: 'GIT_FAILED',
    message: expect.stringMatching(/non-fast-forward|rejected/),
  });
  await push({ force: true });
  expect(remote.git('log', '-1', '--format=%s', 'topic')).toBe('other');
});

test('push: a remote that does not exist, or cannot be reached, is refused', async () => {
  await expect(push({ remote: 'nope' })).rejects.toMatchObject({
    code: 'GIT_FAILED',
    message: expect.stringContaining('There is no remote "nope"'),
  });
  bench.repo.git('remote', 'set-url', 'origin', 'http://me:secret@127.0.0.1:9/mill.git');
  const error = await push().catch((caught: unknown) => caught as Error);
  expect(error).toMatchObject({ code: 'GIT_FAILED' });
  expect((error as Error).message).not.toContain('secret');
});

test('push: neither the repository nor a remote on this machine runs a command', async () => {
  const trace = join(bench.shop.directory, 'trace');
  const evil = `sh -c 'echo ran >> ${trace}'`;
  const hook = (directory: string, name: string) => {
    mkdirSync(directory, { recursive: true });
    const text = `#!/bin/sh\necho ${name} >> '${trace}'\n`;
    writeFileSync(join(directory, name), text, { mode: 0o755 });
  };
  hook(join(bench.repo.path, '.git', 'hooks'), 'pre-push');
  hook(join(remote.path, 'hooks'), 'pre-receive');
  hook(join(remote.path, 'hooks'), 'update');
  hook(join(remote.path, 'hooks'), 'post-receive');
  for (const key of ['core.sshCommand', 'credential.helper', 'remote.origin.receivepack']) {
    bench.repo.git('config', key, evil);
  }
  bench.work.commit('mine');
  await push();
  expect(existsSync(trace)).toBe(false);
  bench.repo.git('config', 'protocol.ext.allow', 'always');
  for (const url of [`ext::${evil}`, 'ssh://nobody@127.0.0.1:9/x']) {
    bench.repo.git('remote', 'set-url', 'origin', url);
    await expect(push()).rejects.toMatchObject({ code: 'GIT_FAILED' });
  }
  expect(existsSync(trace)).toBe(false);
});

test('push: the credential helper of the user is asked', async () => {
  const trace = join(bench.shop.directory, 'asked');
  // HOME of the daemon.
  const config = `[credential]\n\thelper = "!f() { echo \\"$1\\" >> '${trace}'; }; f"\n`;
  writeFileSync(join(bench.shop.directory, '.gitconfig'), config);
  const { createServer } = await import('node:http');
  const server = createServer((_request, response) => {
    response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as { port: number };
  bench.repo.git('remote', 'set-url', 'origin', `http://127.0.0.1:${port}/mill.git`);
  await expect(push()).rejects.toMatchObject({ code: 'GIT_FAILED' });
  server.close();
  server.closeAllConnections();
  expect(readFileSync(trace, 'utf8')).toContain('get');
});

test('push: the SSH command of the user is used, not that of the repository', async () => {
  const trace = join(bench.shop.directory, 'asked');
  const script = (name: string) => `sh -c 'echo ${name} >> ${trace}; exit 1'`;
  const config = `[core]\n\tsshCommand = "${script('user')}"\n`;
  writeFileSync(join(bench.shop.directory, '.gitconfig'), config);
  bench.repo.git('config', 'core.sshCommand', script('repository'));
  bench.repo.git('remote', 'set-url', 'origin', 'ssh://nobody@127.0.0.1:9/x');
  await expect(push()).rejects.toMatchObject({ code: 'GIT_FAILED' });
  expect(readFileSync(trace, 'utf8')).toBe('user\n');
});

test('open-pr: pushes and calls gh', async () => {
  const commit = bench.work.commit('mine');
  bench.shop.gh('echo https://github.com/ada/mill/pull/7');
  const request = { title: 'Mine', body: 'For you', draft: true };
  expect(await bench.workbench.openPr(bench.session, request)).toEqual({
    session_id: bench.session.id,
    branch: 'topic',
    base: 'main',
    draft: true,
    title: 'Mine',
    url: 'https://github.com/ada/mill/pull/7',
  });
  expect(remote.git('rev-parse', 'topic')).toBe(commit);
  expect(bench.shop.ghCalls).toEqual([
    'pr create --head topic --title Mine --body For you --base main --draft',
  ]);
});

test('open-pr: without gh it is refused before anything is pushed; its errors are shown', async () => {
  bench.work.commit('mine');
  bench.shop.gh('echo "a pull request already exists" >&2; exit 1');
  await expect(bench.workbench.openPr(bench.session, {})).rejects.toMatchObject({
    code: 'GIT_FAILED',
    message: expect.stringContaining('a pull request already exists'),
  });
  remote.git('branch', '--delete', '--force', 'topic');
  const environment = { PATH: '/nonexistent', HOME: bench.shop.directory };
  const { Workbench } = await import('./workbench.js');
  const { systemClock } = await import('@millrace/kit/clock');
  const bare = new Workbench({ clock: systemClock, environment, runsHooks: false });
  await expect(bare.openPr(bench.session, {})).rejects.toMatchObject({ code: 'GH_NOT_INSTALLED' });
  expect(remote.git('branch', '--list', 'topic')).toBe('');
});
