import {
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import {
  agentTest as test,
  gitIn,
  newRepo,
  spawn,
  until,
  untilIs,
  type AgentDaemon,
} from './support/sessions.js';

const again = inCampaign('process', test);

/** A server of one file that says where it runs. */
const server = `exec '${process.execPath}' -e 'require("http").createServer((q, a) => a.end(process.cwd())).listen(process.env.PORT, "127.0.0.1")'`;

const repoWith = ({ home }: AgentDaemon, rules?: string) => repoIn(home, rules);

function repoIn(home: string, rules?: string): string {
  const repo = newRepo(join(home, 'mill'));
  writeFileSync(join(repo, '.gitignore'), '.env\nmade\nlog\n');
  if (rules !== undefined) writeFileSync(join(repo, '.millrace.yaml'), rules);
  gitIn(repo, 'add', '.');
  gitIn(repo, 'commit', '--quiet', '--message=rules');
  return repo;
}

const request = (repo: string, more: object = {}) => ({
  prompt: 'say hello',
  backend: 'claude',
  driver: 'headless',
  repo,
  worktree: true,
  ...more,
});

describe.concurrent('rules for worktrees', () => {
  test('setup, copy, serve and teardown of .millrace.yaml', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const { api, home } = daemon;
    const gone = join(home, 'gone');
    const repo = repoWith(
      daemon,
      `worktree:\n  setup: ["echo made by setup; echo $MILLRACE_AGENT_ID > made"]\n  copy: [.env, missing]\n  serve: ${JSON.stringify(server)}\n  teardown: cp made '${gone}'\n`,
    );
    writeFileSync(join(repo, '.env'), 'KEY=1\n');
    const { id } = await spawn(api, request(repo));
    const { worktree } = await until(api, id, 'done');
    expect(readFileSync(join(worktree!, 'made'), 'utf8').trim()).toBe(id);
    expect(readFileSync(join(worktree!, '.env'), 'utf8')).toBe('KEY=1\n');
    const { lines } = await api.ok('GET', `/api/v1/sessions/${id}/output`);
    expect(lines).toContain('made by setup');
    expect(lines).toContain(`copy: missing is not in ${repo}; skipped`);

    const served = await api.ok('POST', `/api/v1/sessions/${id}:serve`);
    expect(await (await fetch(served.url)).text()).toBe(worktree);
    expect(served.url).toBe(`http://127.0.0.1:${served.port}/`);
    expect(await api.ok('POST', `/api/v1/sessions/${id}:serve`)).toEqual(served);
    expect((await api.ok('GET', `/api/v1/sessions/${id}`)).serve).toEqual(served);

    const removed = await api.ok('DELETE', `/api/v1/sessions/${id}`);
    expect(removed).toMatchObject({ worktree_kept: false });
    expect(readFileSync(gone, 'utf8').trim()).toBe(id);
    expect(existsSync(worktree!)).toBe(false);
    await expect(fetch(served.url)).rejects.toThrow();
  });

  test('setup that fails ends the session with the end of its output', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const repo = repoWith(daemon, 'worktree: {setup: ["echo no network >&2; exit 7"]}\n');
    const { id } = await spawn(daemon.api, request(repo));
    const failed = await until(daemon.api, id, 'errored');
    expect(failed.last_error).toBe(
      'setup: `echo no network >&2; exit 7` exited with code 7:\nno network',
    );
    // Once it is repaired, a restart sets the worktree up.
    writeFileSync(join(repo, '.millrace.yaml'), 'worktree: {setup: touch made}\n');
    await daemon.api.ok('POST', `/api/v1/sessions/${id}:restart`);
    const { worktree } = await until(daemon.api, id, 'done');
    expect(existsSync(join(worktree!, 'made'))).toBe(true);
    // What is in the worktree itself is not run, because an agent may have written it.
    writeFileSync(join(worktree!, '.millrace.yaml'), 'worktree: {serve: "touch made-by-agent"}\n');
    const path = `/api/v1/sessions/${id}:serve`;
    await daemon.api.refused({ method: 'POST', path }, 409, 'SESSION_STATE');
  });

  again(
    'settings have rules too, serve by themselves, and a stop ends setup and server',
    async ({ newDaemon }) => {
      const home = realpathSync(mkdtempSync(join(tmpdir(), 'mr-rules-')));
      const repo = repoIn(home, 'worktree: {setup: touch by-file}\n');
      const rules = { setup: ['touch made'], serve: server, serve_auto: true };
      const repos = JSON.stringify([{ path: repo, worktree: rules }]);
      const { api } = await newDaemon({ home, flags: { repos, 'worktrees-repo-config': 'false' } });
      const { id } = await spawn(api, request(repo, { prompt: 'sleep 60' }));
      const { worktree, serve } = await untilIs(api, id, ({ serve: now }) => !!now, true);
      expect(existsSync(join(worktree!, 'made'))).toBe(true);
      expect(existsSync(join(worktree!, 'by-file'))).toBe(false);
      await api.ok('POST', `/api/v1/sessions/${id}:stop`);
      await untilIs(api, id, ({ serve: now }) => now ?? null, null);
      await vi.waitFor(() => expect(fetch(serve!.url)).rejects.toThrow(), 60_000);
    },
  );

  test('copy does not leave the worktree, and wrong rules are named', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const { api, home } = daemon;
    const repo = repoWith(daemon, 'worktree: {copy: [out/key]}\n');
    symlinkSync(home, join(repo, 'out'));
    gitIn(repo, 'add', 'out');
    gitIn(repo, 'commit', '--quiet', '--message=link');
    writeFileSync(join(home, 'key'), 'secret');
    const { id } = await spawn(api, request(repo));
    expect((await until(api, id, 'errored')).last_error).toBe(
      'copy: out/key leads out of the worktree',
    );
    writeFileSync(join(repo, '.millrace.yaml'), 'worktree: {setups: [x], copy: [../x]}\n');
    const { id: next } = await spawn(api, request(repo));
    const { last_error: error } = await until(api, next, 'errored');
    expect(error).toContain('unknown key "worktree.setups"');
    expect(error).toContain('worktree.copy[0] must be a path inside of the repository');
  });

  again('branches: uncommitted files are counted', async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const { api } = daemon;
    const repo = repoWith(daemon);
    const { id } = await spawn(api, request(repo, { prompt: 'write a.txt' }));
    const { worktree } = await until(api, id, 'done');
    writeFileSync(join(worktree!, 'b.txt'), 'b');
    writeFileSync(join(worktree!, '.gitignore'), 'changed');
    const { branches } = await api.ok('GET', '/api/v1/collab/branches?refresh=true');
    expect(branches).toMatchObject([{ agent_id: id, uncommitted: 3 }]);
  });
});
