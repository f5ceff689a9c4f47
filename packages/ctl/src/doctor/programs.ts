import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { messageOf, systemCode } from '@millrace/kit/errors';
import { oldestNode } from '../base/version.js';
import type { Check, Finding } from './check.js';

const run = promisify(execFile);
const PATIENCE_MS = 10_000;
const OLDEST_NPM = '10.0.0';

export function nodeCheck(running: string = process.versions.node): Check {
  return {
    name: 'node',
    async run() {
      const oldest = oldestNode();
      if (isAtLeast(running, oldest)) return { status: 'ok', finding: running };
      return {
        status: 'fail',
        finding: `${running} is too old`,
        advice: `Install Node ${oldest} or later: https://nodejs.org`,
      };
    },
  };
}

/** Other programs that Millrace calls, and what is missing without each. */
export function programChecks(env: NodeJS.ProcessEnv, interrupted: AbortSignal): Check[] {
  const versionOf = (program: string, flag: string): Promise<Answer> =>
    readVersion(program, flag, env, interrupted);
  return [
    {
      name: 'npm',
      run: async () =>
        judge(await versionOf('npm', '--version'), 'npm installs and builds Millrace', OLDEST_NPM),
    },
    {
      name: 'git',
      run: async () =>
        judge(await versionOf('git', '--version'), 'agents need it for their worktrees'),
    },
    {
      name: 'tmux',
      run: async () =>
        judge(
          await versionOf('tmux', '-V'),
          'without it agents run headless only, without a terminal',
        ),
    },
    {
      name: 'gh',
      run: async () =>
        judge(
          await versionOf('gh', '--version'),
          'without it the CI status of branches is unknown',
        ),
    },
  ];
}

type Answer =
  | { kind: 'version'; program: string; version: string }
  | { kind: 'absent'; program: string }
  | { kind: 'broken'; program: string; reason: string };

async function readVersion(
  program: string,
  flag: string,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<Answer> {
  try {
    const { stdout } = await run(program, [flag], { env, signal, timeout: PATIENCE_MS });
    const version = /\d+(?:\.\w+)+/.exec(stdout)?.[0];
    return { kind: 'version', program, version: version ?? stdout.trim() };
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return { kind: 'absent', program };
    if (systemCode(error) === 'EACCES') {
      return { kind: 'broken', program, reason: 'a file of that name on PATH is not executable' };
    }
    return { kind: 'broken', program, reason: reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  const tookTooLong = error instanceof Error && 'killed' in error && error.killed === true;
  return tookTooLong ? `no answer within ${PATIENCE_MS / 1000} s` : messageOf(error).trim();
}

function judge(answer: Answer, use: string, oldest = '0'): Finding {
  const { program } = answer;
  if (answer.kind === 'absent') {
    return { status: 'warn', finding: 'not found', advice: `Install ${program}: ${use}.` };
  }
  if (answer.kind === 'broken') {
    const finding = `does not run: ${answer.reason}`;
    return { status: 'warn', finding, advice: `Fix or reinstall ${program}: ${use}.` };
  }
  if (isAtLeast(answer.version, oldest)) return { status: 'ok', finding: answer.version };
  const finding = `${answer.version} is too old`;
  return { status: 'warn', finding, advice: `Install ${program} ${oldest} or later: ${use}.` };
}

/** Compares dotted numbers; ignores a suffix such as -nightly. */
export function isAtLeast(version: string, oldest: string): boolean {
  const [have, need] = [version, oldest].map((text) =>
    (text.split('-')[0] ?? '').split('.').map(Number),
  );
  for (const [at, wanted] of (need ?? []).entries()) {
    const part = have?.[at] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}
