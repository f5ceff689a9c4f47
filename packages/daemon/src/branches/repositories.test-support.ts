import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
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
    const repository = new Repository(path);
    this.#once(`${name} ${branch}`, () => {
      mkdirSync(path);
      repository.git('init', '--quiet', '--initial-branch', branch);
      repository.commit('first');
      return [path];
    });
    return repository;
  }

  /** A repository with one commit on `main`, and a worktree of it on a new branch. */
  repositoryWithWorktree(branch: string): { repo: Repository; work: Repository } {
    const repo = new Repository(join(this.directory, 'mill'));
    const work = new Repository(repo.worktreePath(branch));
    this.#once(`mill main ${branch}`, () => {
      this.repository();
      repo.worktree(branch);
      return [repo.path, work.path];
    });
    return { repo, work };
  }

  /** Makes directories with git the first time, and afterwards writes the same files again. */
  #once(key: string, make: () => string[]): void {
    const known = made.get(key);
    if (known) return known.forEach((file) => file.write(this.directory));
    const files = make().flatMap((path) => filesIn(path));
    made.set(
      key,
      files.map((file) => new MadeFile(this.directory, file)),
    );
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

/** Git takes three milliseconds for each of its processes, and a repository needs seven. */
const made = new Map<string, MadeFile[]>();

class MadeFile {
  readonly #path: string;
  readonly #bytes: Buffer;

  constructor(
    private readonly home: string,
    path: string,
  ) {
    this.#path = relative(home, path);
    this.#bytes = readFileSync(path);
  }

  /** A worktree and its repository name each other by their paths. */
  write(directory: string): void {
    const text = this.#bytes.toString('utf8');
    const isLink = text.includes(this.home);
    const path = join(directory, this.#path);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, isLink ? text.replaceAll(this.home, directory) : this.#bytes);
  }
}

/** Git needs no directory that has no file. The hooks are examples. */
function filesIn(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (!entry.isDirectory()) return [path];
    return entry.name === 'hooks' ? [] : filesIn(path);
  });
}

export class Repository {
  constructor(readonly path: string) {}

  git(...args: string[]): string {
    return this.#run(args);
  }

  #run(args: string[], input = ''): string {
    const who = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
    const quiet = ['-c', 'commit.gpgsign=false', '-c', 'advice.detachedHead=false'];
    // Else each commit looks in a process of its own whether there is something to collect.
    const plain = ['-c', 'maintenance.auto=false'];
    const env = { PATH: process.env['PATH'], HOME: this.path, GIT_CONFIG_NOSYSTEM: '1' };
    return execFileSync('git', [...who, ...quiet, ...plain, ...args], {
      cwd: this.path,
      env,
      encoding: 'utf8',
      input,
      stdio: ['pipe', 'pipe', 'pipe'],
    }).trim();
  }

  /** Adds a line to a file and commits it. Answers the commit. */
  commit(message: string, file = `${message}.txt`): string {
    appendFileSync(join(this.path, file), `${message}\n`);
    this.git('add', '.');
    this.git('commit', '--quiet', '--message', message);
    return this.#lastCommit();
  }

  /** What the last line of the reflog came to, without another process. */
  #lastCommit(): string {
    const own = join(this.path, '.git');
    const isWorktree = statSync(own).isFile();
    const directory = isWorktree ? readFileSync(own, 'utf8').slice('gitdir: '.length).trim() : own;
    const lines = readFileSync(join(directory, 'logs', 'HEAD'), 'utf8')
      .trim()
      .split('\n');
    return lines.at(-1)!.split(' ', 2)[1]!;
  }

  /** Commits that change no file, on a branch that is checked out here. */
  emptyCommits(count: number, branch = 'main'): void {
    const commits = Array.from({ length: count }, (_, at) => {
      const from = at === 0 ? `from refs/heads/${branch}^0\n` : '';
      const who = 'committer Ada <ada@example.com> 1700000000 +0000';
      return `commit refs/heads/${branch}\n${who}\ndata 5\nempty\n${from}\n`;
    });
    this.#run(['fast-import', '--quiet'], commits.join(''));
  }

  worktreePath(branch: string): string {
    return `${this.path}-${branch.replaceAll('/', '-')}`;
  }

  /** A worktree on a new branch. */
  worktree(branch: string): Repository {
    const path = this.worktreePath(branch);
    this.git('worktree', 'add', '--quiet', '-b', branch, path);
    return new Repository(path);
  }
}
