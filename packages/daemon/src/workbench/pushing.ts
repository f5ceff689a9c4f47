import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/refusals.js';
import type { BranchWorkspace } from './branch-changes.js';
import type { Git } from './git.js';

export interface PushParams {
  remote?: string | undefined;
  /** Replaces the remote branch unless somebody else has moved it. */
  force?: boolean | undefined;
}

/** Pushes the branch of a session to a remote. */
export async function push(
  { git, session, branch, head }: BranchWorkspace,
  { remote: requested, force = false }: PushParams,
  runsHooks: boolean,
): Promise<DaemonSchema<'SessionPush'>> {
  const remote = requested ?? (await defaultRemote(git, branch));
  const url = await git.maybe(['remote', 'get-url', '--push', remote]);
  if (url === undefined) {
    throw fail('GIT_FAILED', `There is no remote "${remote}". Add one with: git remote add`);
  }
  const refs = `refs/heads/${branch}:refs/heads/${branch}`;
  const options = ['--quiet', '--set-upstream', ...(force ? ['--force-with-lease'] : [])];
  const restricted = runsHooks ? [] : restrictions(url);
  const settings = runsHooks ? [] : await credentialSettings(git);
  const { code, said } = await git.run(
    [...settings, 'push', ...options, ...restricted, remote, refs],
    { variables: runsHooks ? {} : await networkVariables(git) },
  );
  if (code !== 0) throw fail('GIT_FAILED', `git push to ${remote} failed: ${withoutSecrets(said)}`);
  return { session_id: session.id, branch, remote, commit: head };
}

async function defaultRemote(git: Git, branch: string): Promise<string> {
  const tracked = await git.maybe(['config', '--get', `branch.${branch}.remote`]);
  return tracked === undefined || tracked === '.' ? 'origin' : tracked;
}

/** Whether the session's repository has a remote. */
export async function hasRemote(git: Git): Promise<boolean> {
  return (await git.text(['remote'])) !== '';
}

/** Disables what a repository, or a remote on this machine, could run during a push. */
function restrictions(url: string): string[] {
  const noHooks =
    'git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=false ' +
    '-c receive.denyCurrentBranch=refuse -c receive.autogc=false receive-pack';
  const program = isLocalPath(url) ? noHooks : 'git-receive-pack';
  return [
    '--no-verify',
    '--no-signed',
    '--no-recurse-submodules',
    '--no-follow-tags',
    `--receive-pack=${program}`,
  ];
}

function isLocalPath(url: string): boolean {
  if (url.startsWith('file://')) return true;
  // `host:path` is an SSH address unless a slash comes first.
  return !/^[a-z][a-z0-9+.-]*:\/\//i.test(url) && !/^[^/]+:/.test(url);
}

/** Only the user's own config names credential helpers and the SSH command, not the repository. */
async function credentialSettings(git: Git): Promise<string[]> {
  const pattern = String.raw`^credential\.`;
  const listed = await git.maybe(['config', '--global', '--null', '--get-regexp', pattern]);
  return (listed ?? '').split('\0').flatMap((entry) => {
    const at = entry.indexOf('\n');
    return at < 0 ? [] : ['-c', `${entry.slice(0, at)}=${entry.slice(at + 1)}`];
  });
}

async function networkVariables(git: Git): Promise<Readonly<Record<string, string>>> {
  const ssh = await git.maybe(['config', '--global', '--get', 'core.sshCommand']);
  return {
    GIT_ALLOW_PROTOCOL: 'https:http:ssh:file',
    GIT_SSH_COMMAND: `${ssh ?? 'ssh'} -o BatchMode=yes`,
  };
}

function withoutSecrets(said: string): string {
  return said.replaceAll(/(https?:\/\/)[^@/\s]+@/g, '$1');
}
