import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

interface ProgramKey {
  key: string;
  /** `{program}` is a program that leaves a trace, `{hooks}` a directory of such hooks. */
  value: string;
}

const file = new URL('../fixtures/git-program-keys.json', import.meta.url);
/** The settings of git that run programs or make it run more of them, by its documentation. */
export const programKeys = JSON.parse(readFileSync(file, 'utf8')) as readonly ProgramKey[];

const hooks = [
  'commit-msg,post-checkout,post-commit,post-index-change,post-merge,post-receive,post-rewrite',
  'post-update,pre-auto-gc,pre-commit,pre-merge-commit,pre-push,pre-rebase,pre-receive',
  'prepare-commit-msg,proc-receive,push-to-checkout,reference-transaction,update',
].flatMap((names) => names.split(','));

export const attributes = '* filter=evil diff=evil merge=evil\n';

/** Makes repositories whose config and hooks name programs, which leave a trace when they run. */
export class Hostility {
  readonly #trace: string;
  readonly #programs: string;

  constructor(directory: string) {
    this.#trace = join(directory, 'trace');
    this.#programs = join(directory, 'programs');
    mkdirSync(this.#programs);
    for (const hook of hooks) this.program(hook);
  }

  /** A program that writes its name into the trace, and passes its input on. */
  program(name: string): string {
    const path = join(this.#programs, name.replaceAll(/[^\w.-]/g, '_'));
    writeFileSync(path, `#!/bin/sh\necho '${name}' >> '${this.#trace}'\nexec cat\n`, {
      mode: 0o755,
    });
    return path;
  }

  /** The programs that ran since the last call. */
  ran(): string[] {
    if (!existsSync(this.#trace)) return [];
    const names = readFileSync(this.#trace, 'utf8').split('\n').slice(0, -1);
    rmSync(this.#trace);
    return [...new Set(names)];
  }

  /** Adds every setting and hook to a repository, directly or by a file that its config includes. */
  infect(gitDirectory: string, by: 'config' | 'include' | 'includeIf' = 'config'): void {
    const config = join(gitDirectory, 'config');
    const target = by === 'config' ? config : join(gitDirectory, 'included');
    const settings = programKeys.map(({ key, value }) => {
      const given = value
        .replace('{program}', () => this.program(key))
        .replace('{hooks}', () => this.#programs);
      return settingText(key, given);
    });
    // Written as text: git would be one process for each of them.
    appendFileSync(target, settings.join(''));
    const name = by === 'include' ? 'include.path' : 'includeIf.gitdir:**.path';
    if (by !== 'config') appendFileSync(config, settingText(name, target));
    const directory = join(gitDirectory, 'hooks');
    mkdirSync(directory, { recursive: true });
    for (const hook of hooks) {
      writeFileSync(join(directory, hook), readFileSync(join(this.#programs, hook)), {
        mode: 0o755,
      });
    }
  }

  /** A repository with a commit, a file that was changed in the same size, and all settings. */
  nested(path: string, by: 'config' | 'include' | 'includeIf', clone?: string): void {
    mkdirSync(path, { recursive: true });
    if (clone === undefined) plainGit(path, 'init', '--quiet', '--initial-branch=main');
    else plainGit(path, 'clone', '--quiet', clone, '.');
    writeFileSync(join(path, '.gitattributes'), attributes);
    writeFileSync(join(path, 'f.txt'), 'one\n');
    plainGit(path, 'add', '.');
    if (clone === undefined) plainGit(path, 'commit', '--quiet', '--message=one');
    writeFileSync(join(path, 'f.txt'), 'two\n');
    this.infect(join(path, '.git'), by);
  }
}

/** A setting as `git config` writes it: section, subsection and name have dots between. */
function settingText(key: string, value: string): string {
  const [, section, , subsection, name] = /^([^.]+)(\.(.+))?\.([^.]+)$/s.exec(key)!;
  const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  const head = subsection === undefined ? section : `${section} ${quoted(subsection)}`;
  return `[${head}]\n\t${name} = ${quoted(value)}\n`;
}

/** Git as a person runs it. */
export function plainGit(cwd: string, ...args: string[]): string {
  const who = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
  const env = { PATH: process.env['PATH'], HOME: cwd, GIT_CONFIG_NOSYSTEM: '1' };
  const stdio = ['ignore', 'pipe', 'pipe'] as const;
  return execFileSync('git', [...who, ...args], {
    cwd,
    env,
    encoding: 'utf8',
    stdio: [...stdio],
  }).trim();
}

/** Git without the programs of a hostile repository; for refs only. */
export function quietGit(cwd: string, ...args: string[]): string {
  const quiet = ['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'core.pager=cat'];
  return plainGit(cwd, ...quiet.flatMap((each) => ['-c', each]), ...args);
}
