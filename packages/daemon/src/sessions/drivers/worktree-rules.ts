import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { cp, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import { readYamlFile } from '@millrace/kit/config';
import { messageOf, UsageError } from '@millrace/kit/errors';
import { z } from 'zod';
import { worktreeSchema, type DaemonSettings } from '../../core/settings.js';
import { endFamily } from './headless.js';
import { OutputLog } from './session-files.js';

export type WorktreeRules = DaemonSettings['repos'][number]['worktree'];

export type WorktreeSettings = {
  readonly repos: DaemonSettings['repos'];
  readonly worktrees: Pick<DaemonSettings['worktrees'], 'repo_config'>;
};

const fileName = '.millrace.yaml';
const fileSchema = z.strictObject({ worktree: worktreeSchema.optional() });

/**
 * The rules for worktrees of a repository. Its file is read from the main working tree: what an
 * agent writes into its own worktree is never run.
 */
export async function worktreeRulesOf(
  { repos, worktrees }: WorktreeSettings,
  root: string,
): Promise<WorktreeRules> {
  const file = join(root, fileName);
  const fromFile =
    worktrees.repo_config && existsSync(file) ? readYamlFile(file, fileSchema).value.worktree : {};
  const own = await realPath(root);
  for (const { path, worktree } of repos) {
    if ((await realPath(path)) === own) return { ...fromFile, ...worktree };
  }
  return fromFile ?? {};
}

async function realPath(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

export interface PreparedWorktree {
  /** The repository's main working tree. */
  root: string;
  worktree: string;
  /** The session's own directory; its output log gets what the commands print. */
  directory: string;
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  signal: AbortSignal;
}

/** Only one setup for each worktree, over all starts of its session. */
const doneName = 'setup-done';

/** Copies files and runs the setup; the reason when something failed. */
export async function setUpWorktree(
  { copy = [], setup = [] }: WorktreeRules,
  parts: PreparedWorktree,
): Promise<string | undefined> {
  const done = join(parts.directory, doneName);
  if (existsSync(done)) return undefined;
  mkdirSync(parts.directory, { recursive: true, mode: 0o700 });
  for (const path of copy) {
    if (!existsSync(join(parts.root, path))) {
      const line = `copy: ${path} is not in ${parts.root}; skipped\n`;
      writeFileSync(new OutputLog(parts.directory).path, line, { flag: 'a', mode: 0o600 });
      continue;
    }
    const trouble = await copyInto(parts, path);
    if (trouble !== undefined) return `copy: ${trouble}`;
  }
  const failure = await runCommands([setup].flat(), parts);
  if (failure !== undefined) return `setup: ${failure}`;
  writeFileSync(done, '', { mode: 0o600 });
  return undefined;
}

/** Runs the commands before a worktree is removed; the reason when that failed. */
export async function tearDownWorktree(
  settings: WorktreeSettings,
  parts: PreparedWorktree,
): Promise<string | undefined> {
  try {
    const { teardown = [] } = await worktreeRulesOf(settings, parts.root);
    const failure = await runCommands([teardown].flat(), parts);
    return failure === undefined ? undefined : `teardown: ${failure}`;
  } catch (error) {
    return ruleTrouble(error);
  }
}

/** Links are copied as links, and a link in the worktree is not followed out of it. */
async function copyInto(
  { root, worktree }: PreparedWorktree,
  path: string,
): Promise<string | undefined> {
  const [from, to] = [join(root, path), join(worktree, path)];
  try {
    mkdirSync(dirname(to), { recursive: true });
    const parent = await realpath(dirname(to));
    if (parent !== worktree && !parent.startsWith(`${worktree}/`)) {
      return `${path} leads out of the worktree`;
    }
    await cp(from, to, { recursive: true, force: true });
  } catch (error) {
    return `${path}: ${messageOf(error)}`;
  }
  return undefined;
}

const timeoutMs = 30 * 60_000;
const tailLines = 10;
const tailBytes = 1_500;

/** Runs commands one after the other; the reason with the end of the output when one failed. */
async function runCommands(
  lines: readonly string[],
  parts: PreparedWorktree,
): Promise<string | undefined> {
  const log = new OutputLog(parts.directory);
  for (const command of lines) {
    if (parts.signal.aborted) return 'it was stopped';
    const from = log.end();
    const end = await runCommand(command, parts, log.path);
    if (end === undefined) continue;
    const { bytes } = log.read(Math.max(from, log.end() - tailBytes), tailBytes);
    const tail = bytes.toString('utf8').trimEnd().split('\n').slice(-tailLines).join('\n');
    return `\`${command}\` ${end}${tail === '' ? '' : `:\n${tail}`}`;
  }
  return undefined;
}

async function runCommand(
  command: string,
  { worktree, environment, clock, signal }: PreparedWorktree,
  log: string,
): Promise<string | undefined> {
  const child = startShell(command, { cwd: worktree, environment, log });
  const ended = new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`));
    child.once('exit', (code, by) => {
      if (code === 0) resolve(undefined);
      else resolve(code === null ? `was ended by ${by}` : `exited with code ${code}`);
    });
  });
  const stop = () => void (child.pid !== undefined && endFamily(child.pid, clock));
  signal.addEventListener('abort', stop, { once: true });
  const timer = clock.after(timeoutMs, stop);
  const end = await ended;
  timer.cancel();
  signal.removeEventListener('abort', stop);
  return end !== undefined && signal.aborted ? 'was stopped' : end;
}

/** Starts a command in a process group of its own, with a file as its output. */
export function startShell(
  command: string,
  { cwd, environment, log }: Pick<PreparedWorktree, 'environment'> & { cwd: string; log: string },
): ChildProcess {
  const output = openSync(log, 'a', 0o600);
  try {
    return spawn('/bin/sh', ['-c', command], {
      cwd,
      env: { ...environment, PWD: cwd },
      detached: true,
      stdio: ['ignore', output, output],
    });
  } finally {
    closeSync(output);
  }
}

/** The reason why rules cannot be used, if that is why reading them failed. */
export function ruleTrouble(error: unknown): string {
  if (error instanceof UsageError) return error.message;
  throw error;
}
