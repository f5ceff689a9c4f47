import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { FieldError } from '@millrace/kit/errors';
import { formatTimestamp } from '@millrace/kit/units';
import { localId, type Backend } from '../core/backend.js';
import { fail } from '../core/refusals.js';
import type { Backends } from '../registry/backends.js';
import { cliOf, prepareRun, takesModel, type ExtraCli } from './cli/command-lines.js';
import {
  git,
  addWorktree,
  removeWorktree,
  repoFacts,
  type GitParts,
  type RepoFacts,
} from './worktrees.js';
import type { Handle, WorktreeOrigin } from '../core/session.js';
import type { Session, SpawnOrigin, SpawnRequest } from './port.js';

/** The requested backend, or the default one; refuses one that cannot be used. */
export async function backendFor(backends: Backends, id: string | undefined): Promise<Backend> {
  const backend = id === undefined ? await defaultBackend(backends) : await backends.find(id);
  return usable(backend);
}

export function usable(backend: Backend): Backend {
  const { id } = backend;
  const refuse = (why: string) => fail('BACKEND_NOT_ELIGIBLE', `The backend "${id}" ${why}`);
  if (id === localId)
    throw refuse('is the local model, which runs no agents: choose from `ctl backend list`.');
  if (!backend.installed) {
    throw refuse('is not installed: install it and run `ctl backend rescan`.');
  }
  if (!backend.enabled) throw refuse(`is disabled: run \`ctl backend enable ${id}\` first.`);
  return backend;
}

async function defaultBackend(backends: Backends): Promise<Backend> {
  const rows = (await backends.read()).backends;
  const found = rows.find((each) => each.default);
  if (found) return found;
  const usableRows = rows.filter((row) => row.installed && row.enabled && row.id !== localId);
  if (usableRows.length === 1) return usableRows[0]!;
  if (!rows.some(({ id, installed }) => installed && id !== localId)) {
    throw fail(
      'BACKEND_NOT_ELIGIBLE',
      'No coding agent is on this machine: install one, such as claude or codex, and run ' +
        '`ctl backend rescan`.',
    );
  }
  if (usableRows.length === 0) {
    const { id } = rows.find((row) => row.installed && row.id !== localId)!;
    throw fail(
      'BACKEND_NOT_ELIGIBLE',
      'Every installed backend is disabled: enable one, such as with ' +
        `\`ctl backend enable ${id}\`.`,
    );
  }
  throw fail(
    'BACKEND_NOT_ELIGIBLE',
    'There is no default backend: choose one with `ctl backend default <id>`, or name one for ' +
      'this agent (`--backend`, in a request `backend`).',
  );
}

export function invalid(field: string, message: string): Error {
  const errors: FieldError[] = [{ pointer: `/${field}`, message }];
  return fail('INVALID_REQUEST', `\`${field}\` ${message}.`, { errors });
}

/** Where a session is to work. */
export interface WorktreeTarget {
  repo: RepoFacts | undefined;
  cwd: string | undefined;
  wantsWorktree: boolean;
}

/** Checks the places that a request names. */
export async function worktreeTargetFor(
  parts: GitParts,
  request: SpawnRequest,
): Promise<WorktreeTarget> {
  const { repo, cwd, branch } = request;
  if (repo !== undefined) await checkDirectory('repo', repo);
  if (cwd !== undefined) await checkDirectory('cwd', cwd);
  const directory = repo ?? cwd ?? process.cwd();
  const facts = await repoFacts(parts, directory);
  const wantsWorktree = request.worktree ?? branch !== undefined;
  if (!facts && (repo !== undefined || wantsWorktree)) await checkGit(parts);
  if (repo !== undefined && !facts) {
    const other = 'name a directory without one in `cwd` (`--cwd`)';
    throw invalid('repo', `names ${repo}, which is not a git repository; ${other}`);
  }
  if (wantsWorktree && !facts) {
    const field = branch === undefined ? 'worktree' : 'branch';
    throw invalid(field, 'needs a git repository: name one in `repo` (`--repo`)');
  }
  if (request.worktree === false) await checkBranch(parts, cwd ?? directory, branch);
  return { repo: facts, cwd, wantsWorktree };
}

/** Without a worktree the agent works on the checked-out branch. */
async function checkBranch(parts: GitParts, cwd: string, branch: string | undefined) {
  if (branch === undefined) return;
  const checkedOut = (await repoFacts(parts, cwd))?.branch;
  if (checkedOut === branch) return;
  const found =
    checkedOut === undefined
      ? 'which is not a git repository'
      : `where ${checkedOut ?? 'no branch'} is checked out`;
  const next = 'leave out `worktree: false` to work on it in a worktree';
  throw invalid('branch', `must be checked out in ${cwd}, ${found}; ${next}`);
}

/** Without git nothing can be said about a repository. */
async function checkGit(parts: GitParts): Promise<void> {
  const { isOk, trouble } = await git(parts, '/', '--version');
  if (!isOk) throw invalid('repo', `cannot be read, because git failed: ${trouble}`);
}

async function checkDirectory(field: 'repo' | 'cwd', path: string): Promise<void> {
  if (path.includes('\0')) throw invalid(field, 'contains a NUL character; remove it');
  if (!isAbsolute(path)) throw invalid(field, 'must be an absolute path');
  const facts = await stat(path).catch(() => undefined);
  if (!facts)
    throw invalid(field, `names ${path}, which does not exist: create it or name another`);
  if (!facts.isDirectory()) throw invalid(field, `names ${path}, which is not a directory`);
}

export interface NewEntryParts {
  id: string;
  now: number;
  git: GitParts;
  dataDir: string;
  token: string;
  extra: readonly ExtraCli[];
}

/** Refuses what the backend's command line cannot do, before anything is created. */
export function checkRun(
  backend: string,
  driver: Session['driver'],
  request: SpawnRequest,
  extra: readonly ExtraCli[],
): void {
  const cli = cliOf(backend, extra);
  const { prompt, model = null } = request;
  if (model !== null && driver !== 'acp' && !takesModel(cli)) {
    throw invalid('model', `cannot be chosen for the backend "${backend}"`);
  }
  if (prompt.includes('\0')) throw invalid('prompt', 'holds a NUL, which no agent takes');
  if (request.mode !== undefined && driver !== 'acp') {
    throw invalid('mode', 'can be chosen only with the driver "acp"');
  }
  if (driver === 'acp') return;
  const run = prepareRun(backend, extra, { cli, driver, prompt, model, session: undefined });
  if ('impossible' in run) throw invalid('prompt', `cannot be given: ${run.impossible}`);
}

/** The session of a request that passed all gates. Makes its worktree where it is to have one. */
export async function newEntry(
  parts: NewEntryParts,
  {
    backend,
    driver,
    target,
  }: { backend: string; driver: Session['driver']; target: WorktreeTarget },
  request: SpawnRequest,
  origin: SpawnOrigin,
): Promise<{ session: Session; handle: Handle }> {
  const { id, now } = parts;
  const name = request.name ?? nameFrom(request.prompt);
  const made = target.wantsWorktree ? await worktreeFor(parts, target, request, name) : undefined;
  const stamp = formatTimestamp(now);
  const { repo } = target;
  const session: Session = {
    id,
    name,
    status: 'spawning',
    backend,
    backend_session_id: null,
    model: request.model ?? null,
    driver,
    repo: request.repo ?? repo?.root ?? null,
    worktree: made?.path ?? null,
    branch: made?.mark.branch ?? repo?.branch ?? null,
    ...(made && { base_branch: made.mark.baseBranch, base_commit: made.mark.base }),
    workdir: target.cwd ?? made?.path ?? request.repo ?? process.cwd(),
    prompt: request.prompt,
    tags: request.tags ?? [],
    parent_id: request.parent_id ?? null,
    pid: null,
    exit_code: null,
    auto_restart: request.auto_restart ?? false,
    restart_count: 0,
    pipeline_id: origin.pipeline?.id ?? null,
    job_id: origin.pipeline?.jobId ?? null,
    context_tokens: null,
    context_state: null,
    force_compact: 'inherit',
    limited_until: null,
    last_error: null,
    status_since: stamp,
    status_reason: null,
    created_at: stamp,
    updated_at: stamp,
  };
  const handle = newHandle(parts, backend, session.model, made?.mark ?? null);
  const isWorkspaceNamed = (request.cwd ?? request.repo) !== undefined;
  const { mode } = request;
  return { session, handle: { ...handle, isWorkspaceNamed, ...(mode && { mode }) } };
}

function newHandle(
  { token, now, extra }: NewEntryParts,
  backend: string,
  model: string | null,
  worktree: WorktreeOrigin | null,
): Handle {
  return {
    token,
    startMark: null,
    starts: 0,
    startedAt: now,
    inputAt: now,
    limitTurn: null,
    isPromptPending: false,
    isStopping: false,
    cli: cliOf(backend, extra),
    format: 'text',
    model,
    autoRestarts: 0,
    restartAt: null,
    outputStart: 0,
    worktree,
  };
}

async function worktreeFor(
  { git, dataDir, id }: NewEntryParts,
  { repo }: WorktreeTarget,
  request: SpawnRequest,
  name: string,
) {
  const made = await addWorktree(git, {
    repo: repo!,
    branch: request.branch,
    name,
    suffix: id.slice(-6).toLowerCase(),
    fallback: join(dataDir, 'worktrees'),
  });
  if ('refusal' in made) {
    const isRequested = made.field !== 'branch' || request.branch !== undefined;
    throw invalid(isRequested ? made.field : 'worktree', made.refusal);
  }
  return made;
}

/** Removes what `newEntry` created, when the session cannot be stored. */
export async function discardEntry(
  git: GitParts,
  { session, handle }: { session: Session; handle: Handle },
): Promise<void> {
  if (session.worktree !== null && handle.worktree) {
    await removeWorktree(git, session.worktree, handle.worktree);
  }
}

const maxNameLength = 60;

/** The first line of a prompt, cut at a word. */
export function nameFrom(prompt: string): string {
  const printable = prompt.replaceAll(/\p{Cc}+/gu, '\n');
  const line = printable.split('\n').find((each) => each.trim() !== '');
  const words = (line ?? '').trim().replaceAll(/\s+/g, ' ');
  if (words === '') return 'agent';
  if (words.length <= maxNameLength) return words;
  const cut = words.slice(0, maxNameLength).replace(/\s+\S*$/, '');
  return `${cut.trimEnd()}…`;
}

/** The same for the same request alone, in whatever order its members came. */
export function hashOf(request: SpawnRequest): string {
  const members = Object.entries(request).filter(([, value]) => value !== undefined);
  const text = JSON.stringify(members.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return createHash('sha256').update(text).digest('hex');
}
