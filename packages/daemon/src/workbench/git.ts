import { fail } from '../core/api.js';
import { runGit, type GitParts, type GitRun } from '../git/run-git.js';

type RunOptions = Pick<GitRun, 'variables' | 'input' | 'keeps' | 'maxBytes'>;

export interface GitResult {
  code: number | null;
  stdout: string;
  /** What git wrote to stderr, without its prefixes. */
  said: string;
  /** The output was too large, and its end is missing. */
  isCut: boolean;
}

const timeoutMs = 120_000;

/** Runs git in one directory. A run that cannot be completed is refused with GIT_FAILED. */
export class Git {
  constructor(
    private readonly parts: GitParts,
    readonly cwd: string,
  ) {}

  get environment(): GitParts['environment'] {
    return this.parts.environment;
  }

  in(cwd: string): Git {
    return new Git(this.parts, cwd);
  }

  /** Any exit code is a result. */
  async run(args: readonly string[], options: RunOptions = {}): Promise<GitResult> {
    const { clock, environment, runsHooks: isTrusted } = this.parts;
    const run = { clock, environment, cwd: this.cwd, timeoutMs, isTrusted, ...options };
    const end = await runGit(run, args);
    switch (end.kind) {
      case 'exited':
        return { code: end.code, stdout: end.stdout, said: messageOf(end.stderr), isCut: false };
      case 'too_long':
        if (options.keeps !== 'start') throw failed(args, 'its output is too large');
        return { code: 0, stdout: end.stdout, said: '', isCut: true };
      case 'timeout':
        throw failed(args, `it took longer than ${timeoutMs / 1000} seconds`);
      case 'aborted':
        throw failed(args, 'it was interrupted');
      case 'not_started':
        throw failed(args, 'git is not installed');
    }
  }

  /** A run that must succeed. */
  async done(args: readonly string[], options: RunOptions = {}): Promise<GitResult> {
    const result = await this.run(args, options);
    const { code, said } = result;
    if (code === 0) return result;
    throw failed(args, said === '' ? `it exited with code ${code}` : said);
  }

  /** The output of a run that must succeed, without its last line break. */
  async text(args: readonly string[], options: RunOptions = {}): Promise<string> {
    return (await this.done(args, options)).stdout.replace(/\n$/, '');
  }

  /** The output of a run that may fail; undefined when it did. */
  async maybe(args: readonly string[], options: RunOptions = {}): Promise<string | undefined> {
    const { code, stdout } = await this.run(args, options);
    return code === 0 ? stdout.replace(/\n$/, '') : undefined;
  }

  /** The commit of a name; undefined when there is none. */
  commitOf(name: string): Promise<string | undefined> {
    const wanted = `${name}^{commit}`;
    return this.maybe(['rev-parse', '--verify', '--quiet', '--end-of-options', wanted]);
  }
}

function failed([command = '']: readonly string[], why: string): Error {
  return fail('GIT_FAILED', `git ${command} failed: ${why.slice(0, maxSaidLength)}`);
}

const maxSaidLength = 2_000;

/** Hints and progress are left out. */
function messageOf(stderr: string): string {
  const lines = stderr.split('\n').flatMap((line) => line.trim() || []);
  return lines
    .filter((line) => !line.startsWith('hint:'))
    .map((line) => line.replace(/^(?:fatal|error): /, ''))
    .join('; ');
}
