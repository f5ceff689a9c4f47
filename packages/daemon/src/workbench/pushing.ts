import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/api.js';
import type { BranchWorkspace } from './branch-changes.js';
import type { Git } from './git.js';
import { runGh, type GitParts } from '../git/run-git.js';
import { findProgram } from '../registry/programs.js';
import { baseOf } from './workspace.js';

export interface PushParams {
  remote?: string | undefined;
  /** Replaces the remote branch unless it was moved by someone else. */
  force?: boolean | undefined;
}

export async function push(
  { git, session, branch, head }: BranchWorkspace,
  { remote: requested, force = false }: PushParams,
  runsHooks: boolean,
): Promise<DaemonSchema<'SessionPush'>> {
  const remote = requested ?? (await defaultRemote(git, branch));
  const urls = await git.maybe(['remote', 'get-url', '--push', '--all', '--', remote]);
  if (!urls) {
    throw fail('GIT_FAILED', `There is no remote "${remote}". Add one with: git remote add`);
  }
  const wanted = { remote, branch, head, force };
  if (runsHooks) await pushWithHooks(git, wanted);
  else await pushPlainly(git, urls.split('\n'), wanted);
  return { session_id: session.id, branch, remote, commit: head };
}

interface Wanted {
  remote: string;
  branch: string;
  head: string;
  force: boolean;
}

/** As git does it, for repositories that may run their hooks. */
async function pushWithHooks(git: Git, { remote, branch, force }: Wanted): Promise<void> {
  const options = ['--quiet', '--set-upstream', ...(force ? ['--force-with-lease'] : [])];
  const refs = `refs/heads/${branch}:refs/heads/${branch}`;
  refuseFailed(remote, await git.run(['push', ...options, '--', remote, refs]));
}

/**
 * Pushes the commit to each address of the remote, without reading the repository's settings for
 * remotes; then updates the refs as git would.
 */
async function pushPlainly(git: Git, urls: readonly string[], wanted: Wanted): Promise<void> {
  const { remote, branch, head, force } = wanted;
  const ref = `refs/heads/${branch}`;
  const tracking = await trackingRef(git, remote, ref);
  const known = tracking === undefined ? undefined : await git.commitOf(tracking);
  const lease = force ? [`--force-with-lease=${ref}:${known ?? ''}`] : [];
  const variables = { GIT_SSH_COMMAND: `${await sshCommand(git)} -o BatchMode=yes` };
  for (const url of urls) {
    const options = ['--quiet', ...lease, ...restrictions(url)];
    const args = ['push', ...options, '--', url, `${head}:${ref}`];
    refuseFailed(remote, await git.run(args, { variables }));
  }
  if (tracking !== undefined) {
    await git.done(['update-ref', '-m', 'update by push', tracking, head]);
  }
  await git.done(['config', `branch.${branch}.remote`, remote]);
  await git.done(['config', `branch.${branch}.merge`, ref]);
}

function refuseFailed(remote: string, { code, said }: { code: number | null; said: string }): void {
  if (code === 0) return;
  throw fail('GIT_FAILED', `git push to ${remote} failed: ${withoutSecrets(said)}`);
}

async function defaultRemote(git: Git, branch: string): Promise<string> {
  const tracked = await git.maybe(['config', '--get', `branch.${branch}.remote`]);
  return tracked === undefined || tracked === '.' ? 'origin' : tracked;
}

/** Whether the session's repository has a remote. */
export async function hasRemote(git: Git): Promise<boolean> {
  return (await git.text(['remote'])) !== '';
}

/** The tracking ref of a remote branch, by the refspecs of fetch. */
async function trackingRef(git: Git, remote: string, ref: string): Promise<string | undefined> {
  const listed = (await git.maybe(['config', '--get-all', `remote.${remote}.fetch`])) ?? '';
  for (const line of listed.split('\n')) {
    const [from = '', to = ''] = line.replace(/^\+/, '').split(':');
    const [start = '', end] = from.split('*');
    const isMatch =
      end === undefined ? from === ref : ref.startsWith(start) && ref.endsWith(end ?? '');
    if (!isMatch || !to.startsWith('refs/remotes/')) continue;
    const name = end === undefined ? '' : ref.slice(start.length, ref.length - end.length);
    return to.replace('*', () => name);
  }
  return undefined;
}

/** Disables what a remote on this machine could run during a push. */
function restrictions(url: string): string[] {
  const noHooks =
    'git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=false ' +
    '-c receive.denyCurrentBranch=refuse -c receive.autogc=false -c gc.auto=0 ' +
    '-c maintenance.auto=false receive-pack';
  const program = isLocalPath(url) ? noHooks : 'git-receive-pack';
  return ['--no-verify', '--no-signed', '--no-recurse-submodules', '--no-follow-tags'].concat(
    `--receive-pack=${program}`,
  );
}

function isLocalPath(url: string): boolean {
  if (/^file:\/\//i.test(url)) return true;
  // `host:path` is an SSH address unless a slash comes first.
  return !/^[a-z][a-z0-9+.-]*:\/\//i.test(url) && !/^[^/]+:/.test(url);
}

/** Only the user names the SSH command, by the environment or the own config. */
async function sshCommand(git: Git): Promise<string> {
  const given = git.environment['GIT_SSH_COMMAND'];
  if (given) return given;
  const args = ['config', '--global', '--includes', '--get', 'core.sshCommand'];
  return (await git.maybe(args)) ?? 'ssh';
}

function withoutSecrets(said: string): string {
  return said.replaceAll(/(https?:\/\/)[^@/\s]+@/g, '$1');
}

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
