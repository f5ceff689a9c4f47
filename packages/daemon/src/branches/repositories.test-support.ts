import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../registry/programs.js';

/** A directory with real repositories, and with the programs that a daemon would find. */
export class Workshop {
  readonly directory = mkdtempSync(join(tmpdir(), 'mr-branches-'));
  readonly bin = join(this.directory, 'bin');
  readonly #calls = join(this.directory, 'calls');
  readonly #hanging = join(this.directory, 'hanging');

  static async open(): Promise<Workshop> {
    const shop = new Workshop();
    mkdirSync(shop.bin);
    const git = await findProgram('git', process.env['PATH']);
    if (!git) throw new Error('This test needs git');
    symlinkSync(git, join(shop.bin, 'git'));
    shop.gh('echo "[]"');
    return shop;
  }

  get environment(): Record<string, string> {
    return { PATH: this.bin, HOME: this.directory };
  }

  /** Puts a program in the place of `gh`; what it was called with is written down. */
  gh(script: string): void {
    this.program('gh', `echo "$@" >> '${this.#calls}'\n${script}`);
  }

  /** A program of the search path, as a script; it has the system's own programs. */
  program(name: string, script: string): void {
    const file = join(this.bin, name);
    rmSync(file, { force: true });
    writeFileSync(file, `#!/bin/sh\nPATH=/usr/bin:/bin\n${script}\n`);
    chmodSync(file, 0o755);
  }

  /** What a program does that never ends. */
  get hang(): string {
    return `touch '${this.#hanging}'; sleep 600`;
  }

  get isHanging(): boolean {
    return existsSync(this.#hanging);
  }

  /** True once for each program that hangs. */
  hasHung(): boolean {
    if (!this.isHanging) return false;
    rmSync(this.#hanging);
    return true;
  }

  without(name: string): void {
    rmSync(join(this.bin, name));
  }

  runs(...runs: object[]): void {
    this.gh(`cat <<'END'\n${JSON.stringify(runs)}\nEND`);
  }

  get ghCalls(): string[] {
    try {
      return readFileSync(this.#calls, 'utf8').split('\n').slice(0, -1);
    } catch {
      return [];
    }
  }

  /** A repository with one commit on `main`. */
  repository(name = 'mill', branch = 'main'): Repository {
    const path = join(this.directory, name);
    mkdirSync(path);
    const repository = new Repository(path);
    repository.git('init', '--quiet', '--initial-branch', branch);
    repository.commit('first');
    return repository;
  }

  /** A clone of it: its `origin/HEAD` is set. */
  clone(of: Repository, name: string): Repository {
    const path = join(this.directory, name);
    of.git('clone', '--quiet', of.path, path);
    return new Repository(path);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export class Repository {
  constructor(readonly path: string) {}

  git(...args: string[]): string {
    const who = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
    const quiet = ['-c', 'commit.gpgsign=false', '-c', 'advice.detachedHead=false'];
    const env = { PATH: process.env['PATH'], HOME: this.path, GIT_CONFIG_NOSYSTEM: '1' };
    return execFileSync('git', [...who, ...quiet, ...args], {
      cwd: this.path,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  }

  /** Adds a line to a file and commits it. Answers the commit. */
  commit(message: string, file = `${message}.txt`): string {
    appendFileSync(join(this.path, file), `${message}\n`);
    this.git('add', '.');
    this.git('commit', '--quiet', '--message', message);
    return this.git('rev-parse', 'HEAD');
  }

  /** A worktree on a new branch. */
  worktree(branch: string): Repository {
    const path = `${this.path}-${branch.replaceAll('/', '-')}`;
    this.git('worktree', 'add', '--quiet', '-b', branch, path);
    return new Repository(path);
  }
}
