import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Turns } from '../core/turns.js';
import { git, type GitParts } from '../git/run-git.js';
import { tailOf } from '../sessions/answer.js';
import { runProgram } from '../registry/run-program.js';
import { sessionDirectory } from '../sessions/drivers/session-files.js';
import { tearDownWorktree, type WorktreeSettings } from '../sessions/drivers/worktree-rules.js';
import type { Session, Sessions } from '../sessions/port.js';
import { repoFacts } from '../sessions/worktrees.js';
import type { Workbench } from '../workbench/workbench.js';
import { TaskFailure } from './agent-steps.js';
import type { PlanCheck, RaceEntry } from './definition.js';
import { maxAgentText } from './prompts.js';

export interface BranchWorkParts {
  workbench: Workbench;
  git: GitParts;
  sessions: Sessions;
  settings: { readonly values: WorktreeSettings };
  dataDir: string;
  log: Log;
  /** Environment variables of a backend's program. */
  variablesFor: (backend: string) => Record<string, string>;
  /** One merge at a time per repository. */
  mergeTurns: Turns;
}

const verifyMs = 30 * 60_000;
const maxOutputMiB = 16;
/** Names of files in one command. */
const maxNames = 500;

/** Runs the checks of a task in the directory of its session. In a worktree they leave nothing. */
export async function verify(
  parts: BranchWorkParts,
  session: Session,
  command: string,
  signal: AbortSignal,
): Promise<PlanCheck> {
  const { workdir: cwd, backend } = session;
  const end = await runProgram({
    file: '/bin/sh',
    args: ['-c', `{ ${command}\n} 2>&1`],
    cwd,
    environment: { ...parts.variablesFor(backend), PWD: cwd },
    timeoutMs: verifyMs,
    maxBytes: maxOutputMiB * 1_048_576,
    signal,
    clock: parts.git.clock,
  });
  signal.throwIfAborted();
  await removeArtifacts(parts, session);
  const said = 'stdout' in end ? end.stdout + end.stderr : '';
  const why =
    end.kind === 'timeout'
      ? `\nIt took longer than ${verifyMs / 60_000} minutes.`
      : end.kind === 'not_started'
        ? `\nIt could not be started: ${end.reason}`
        : end.kind === 'too_long'
          ? `\nIt printed more than ${maxOutputMiB} MiB and was ended: make it print less.`
          : '';
  const code = end.kind === 'exited' ? end.code : null;
  const output = tailOf(said + why, maxAgentText);
  return { command, passed: code === 0, exit_code: code, output };
}

/** Commits what the agent left uncommitted, so that its branch has all of its work. */
export async function commitRest(
  { workbench }: BranchWorkParts,
  session: Session,
  message: string,
): Promise<void> {
  if (session.worktree === null) return;
  try {
    await workbench.commit(session, { message, force: true });
  } catch (error) {
    if (!(error instanceof Refusal && error.code === 'NO_CHANGES')) throw error;
  }
}

/** The size of a branch's changes; null when it is not known. */
export async function diffSize(
  { workbench }: BranchWorkParts,
  session: Session,
  base: string | undefined,
): Promise<RaceEntry['diff']> {
  const diff = await workbench.diff(session, base).catch(onlyRefusals);
  if (!diff) return null;
  return { files: diff.file_count, additions: diff.additions, deletions: diff.deletions };
}

/** The changes of a branch as text, cut at the end. */
export async function diffText(
  { workbench }: BranchWorkParts,
  session: Session,
  base: string | undefined,
): Promise<string> {
  const diff = await workbench.diff(session, base).catch(onlyRefusals);
  const text = (diff?.files ?? []).map(fileText).join('\n');
  const bytes = Buffer.from(text);
  if (bytes.length <= maxAgentText) return text;
  const start = bytes.subarray(0, maxAgentText - 64).toString('utf8');
  return `${start}\n[cut: ${bytes.length} bytes in all]`;
}

function fileText({ path, status, hunks }: DaemonSchema<'SessionDiff'>['files'][number]): string {
  const parts = hunks.map(({ old_start, old_lines, new_start, new_lines, lines }) =>
    [`@@ -${old_start},${old_lines} +${new_start},${new_lines} @@`, ...lines].join('\n'),
  );
  return [`--- ${path} (${status})`, ...parts].join('\n');
}

function onlyRefusals(error: unknown): undefined {
  if (!(error instanceof Refusal)) throw error;
}

export interface MergeRequest {
  session: Session;
  title: string;
  base: string | undefined;
  command: string | undefined;
  signal: AbortSignal;
}

/**
 * Rebases the branch on its base, checks it once more, and merges it; one branch of a repository
 * at a time. Safe to repeat: a branch that the base has already is merged.
 */
export async function mergeBranch(
  parts: BranchWorkParts,
  { session, title, base, command, signal }: MergeRequest,
): Promise<PlanCheck | null> {
  const { workbench, mergeTurns, sessions } = parts;
  const options = base === undefined ? {} : { base };
  const common = ['rev-parse', '--path-format=absolute', '--git-common-dir'];
  const { stdout: repository } = await git(parts.git, session.workdir, ...common);
  return mergeTurns.in(repository, async () => {
    try {
      await workbench.rebase(session, options);
      const check = command === undefined ? null : await verify(parts, session, command, signal);
      if (check && !check.passed) {
        throw new TaskFailure(
          `The checks failed after ${session.branch} was rebased on its base, so it was not ` +
            `merged. Fix it in ${session.workdir}, then run: ctl agent merge ${session.id}\n` +
            check.output,
        );
      }
      await workbench.merge(session, { ...options, message: `${title} (${session.branch})` });
      await sessions.setMerged(session.id, true);
      return check;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.code === 'NO_CHANGES') {
        await sessions.setMerged(session.id, true);
        return null;
      }
      if (error.code !== 'MERGE_CONFLICT') throw error;
      throw new TaskFailure(
        `${error.detail} Rebase the branch yourself in ${session.workdir} (git rebase ` +
          `${base ?? session.base_branch ?? 'main'}), then run: ctl agent merge ${session.id}`,
        { cause: error },
      );
    }
  });
}

/** What checks have changed and made: all work was committed before they ran. */
async function removeArtifacts({ git: parts }: BranchWorkParts, { worktree }: Session) {
  if (worktree === null) return;
  const namesOf = async (...args: string[]) => {
    const { stdout } = await git(parts, worktree, ...args);
    return stdout.split('\0').filter((name) => name !== '');
  };
  const { stdout: head } = await git(parts, worktree, 'rev-parse', 'HEAD');
  // Its exit code reports changes, which are listed below.
  await git(parts, worktree, 'update-index', '-q', '--really-refresh');
  const plain = ['--name-only', '-z', '--ignore-submodules=all'];
  const changed = await namesOf('diff-index', ...plain, head, '--');
  for (let at = 0; at < changed.length; at += maxNames) {
    // Without their entries, read-tree writes them again.
    const names = changed.slice(at, at + maxNames);
    await git(parts, worktree, 'update-index', '--force-remove', '--', ...names);
  }
  if (changed.length > 0) await git(parts, worktree, 'read-tree', '--reset', '-u', head);
  for (const name of await namesOf('ls-files', '--others', '--exclude-standard', '-z')) {
    await rm(join(worktree, name), { recursive: true, force: true });
  }
}

/**
 * Removes a worktree whose work is in its branch; returns the tip of the branch. It stays when its
 * teardown fails.
 */
export async function dropWorktree(
  all: BranchWorkParts,
  session: Session,
  signal: AbortSignal,
): Promise<{ repo: string; branch: string; tip: string } | undefined> {
  const { git: parts, log } = all;
  const { id, worktree, repo, branch } = session;
  if (worktree === null || repo === null || branch === null) return undefined;
  // It is gone when the daemon ended right after the removal.
  const reason = existsSync(worktree) && (await tearDown(all, { id, worktree, repo }, signal));
  signal.throwIfAborted();
  if (reason) {
    log.warn({ session: id, worktree, reason }, 'worktree kept');
    return undefined;
  }
  const tip = await git(parts, repo, 'rev-parse', '--verify', '--quiet', `refs/heads/${branch}`);
  await git(parts, repo, 'worktree', 'remove', '--force', worktree);
  return tip.isOk ? { repo, branch, tip: tip.stdout } : undefined;
}

/** Runs what the repository says; the reason when that failed. */
async function tearDown(
  { git: parts, settings, dataDir, variablesFor }: BranchWorkParts,
  { id, worktree, repo }: { id: string; worktree: string; repo: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const root = (await repoFacts(parts, repo))?.root ?? repo;
  const directory = sessionDirectory(dataDir, id);
  const environment = { ...variablesFor(''), MILLRACE_AGENT_ID: id };
  const place = { root, worktree, directory, environment, clock: parts.clock, signal };
  return tearDownWorktree(settings.values, place);
}

/** Deletes a branch unless somebody has gone on with it. */
export async function deleteBranch(
  parts: GitParts,
  { repo, branch, tip }: { repo: string; branch: string; tip: string },
): Promise<void> {
  const now = await git(parts, repo, 'rev-parse', '--verify', '--quiet', `refs/heads/${branch}`);
  if (!now.isOk || now.stdout !== tip) return;
  await git(parts, repo, 'branch', '--delete', '--force', branch);
}
