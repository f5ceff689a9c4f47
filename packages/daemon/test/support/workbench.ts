import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { Repository } from '../../src/branches/repositories.test-support.js';
import { findProgram } from '../../src/registry/programs.js';
import { startDaemon, type TestDaemon } from './daemon.js';
import { FakeClis } from './fake-clis.js';

/** A daemon with an agent that has written a file in a worktree of its own. */
export class WorkbenchDaemon {
  private constructor(
    readonly daemon: TestDaemon,
    readonly repo: Repository,
    readonly clis: FakeClis,
  ) {}

  static async start(flags: Readonly<Record<string, string>> = {}): Promise<WorkbenchDaemon> {
    const home = realpathSync(mkdtempSync(join(tmpdir(), 'mr-workbench-')));
    const clis = new FakeClis(join(home, 'bin'));
    clis.add('claude', `require('node:fs').writeFileSync('made.txt', 'made\\n');`);
    const tools = join(home, 'tools');
    mkdirSync(tools);
    symlinkSync((await findProgram('git', process.env['PATH']))!, join(tools, 'git'));
    const path = join(home, 'mill');
    mkdirSync(path);
    const repo = new Repository(path);
    repo.git('init', '--quiet', '--initial-branch', 'main');
    repo.commit('first');
    const daemon = await startDaemon({ home, flags, path: `${clis.path}:${tools}` });
    return new WorkbenchDaemon(daemon, repo, clis);
  }

  /** The path of a session that is done, and its worktree. */
  async agent(
    branch: string,
    api = this.daemon.api,
  ): Promise<{ path: string; id: string; work: Repository }> {
    const body = { prompt: 'x', backend: 'claude', driver: 'headless', name: branch };
    const spawn = { ...body, repo: this.repo.path, branch };
    const { json } = await api.send({ method: 'POST', path: '/api/v1/spawn', body: spawn });
    const path = `/api/v1/sessions/${json.id}`;
    const isDone = async () => expect(await api.ok('GET', path)).toMatchObject({ status: 'done' });
    await vi.waitFor(isDone, { timeout: 60_000, interval: 100 });
    return { path, id: json.id, work: new Repository(json.worktree) };
  }

  /** Commits other content of one file on both sides. */
  conflict(work: Repository, file: string): void {
    for (const [side, at] of [[work, 'ours'] as const, [this.repo, 'theirs'] as const]) {
      writeFileSync(join(side.path, file), `${at}\n`);
      side.git('add', '.');
      side.git('commit', '--quiet', `--message=${at}`);
    }
  }
}
