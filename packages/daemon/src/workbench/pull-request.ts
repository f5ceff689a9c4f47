import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/refusals.js';
import { runGh } from '../git/run-git.js';
import { findProgram } from '../registry/programs.js';
import type { BranchWorkspace } from './branch-changes.js';
import type { GitParts } from './git.js';
import { baseOf } from './workspace.js';

const timeoutMs = 60_000;

/** The program gh; refuses with GH_NOT_INSTALLED when it is not on the search path. */
export async function findGh({ environment }: GitParts): Promise<string> {
  const file = await findProgram('gh', environment['PATH']);
  if (file !== undefined) return file;
  throw fail(
    'GH_NOT_INSTALLED',
    'Pull requests need the GitHub command line gh. Install it (https://cli.github.com), run ' +
      '`gh auth login`, and make sure the daemon finds it on its PATH.',
  );
}

/** Opens a pull request for the branch of a session, which must be on the remote. */
export async function openPullRequest(
  parts: GitParts & { gh: string },
  workspace: BranchWorkspace,
  request: DaemonSchema<'OpenPrRequest'>,
): Promise<DaemonSchema<'SessionPullRequest'>> {
  const { session, git, branch } = workspace;
  const { title = session.name, body = '', draft = false } = request;
  const base = (await baseOf(workspace, request.base))?.name ?? null;
  const args = ['pr', 'create', '--head', branch, '--title', title, '--body', body];
  const { clock, environment, gh: file } = parts;
  const end = await runGh({ clock, environment, file, cwd: git.cwd, timeoutMs }, [
    ...args,
    ...(base === null ? [] : ['--base', base]),
    ...(draft ? ['--draft'] : []),
  ]);
  if (end.kind !== 'exited') throw fail('GIT_FAILED', `gh pr create failed: ${end.kind}`);
  const url = end.stdout.split('\n').find((line) => /^https?:\/\/\S+$/.test(line.trim()));
  if (end.code === 0 && url !== undefined) {
    return { session_id: session.id, branch, base, draft, title, url: url.trim() };
  }
  const said = (end.stderr.trim() || end.stdout.trim()).slice(0, 1_000);
  throw fail('GIT_FAILED', `gh pr create failed: ${said || `it exited with code ${end.code}`}`);
}
