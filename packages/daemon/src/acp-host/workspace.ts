import { constants } from 'node:fs';
import { mkdir, open, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { systemCode } from '@millrace/kit/errors';

const maxFileBytes = 10 * 1024 * 1024;

/** Files of the agent's workspace; nothing outside of it, symbolic links resolved. */
export class Workspace {
  private constructor(readonly root: string) {}

  static async at(directory: string): Promise<Workspace> {
    return new Workspace(await realpath(directory));
  }

  /** The real path of a file or directory inside; throws for one outside. */
  async inside(path: string): Promise<string> {
    if (path.includes('\0')) throw new Error('A path cannot hold a NUL.');
    const wanted = isAbsolute(path) ? resolve(path) : resolve(this.root, path);
    const real = await realOf(wanted);
    if (real !== this.root && !real.startsWith(`${this.root}${sep}`)) {
      throw new Error(`${path} is outside of the workspace ${this.root}.`);
    }
    return real;
  }

  async read(
    path: string,
    { line, limit }: { line?: number | null; limit?: number | null },
  ): Promise<string> {
    const file = await open(await this.inside(path), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const facts = await file.stat();
      if (!facts.isFile()) throw new Error(`${path} is not a file.`);
      if (facts.size > maxFileBytes) throw new Error(`${path} is larger than 10 MiB.`);
      const text = await file.readFile('utf8');
      if (!line && !limit) return text;
      const start = Math.max(0, (line ?? 1) - 1);
      const lines = text.split('\n');
      return lines.slice(start, limit ? start + limit : undefined).join('\n');
    } finally {
      await file.close();
    }
  }

  async write(path: string, content: string): Promise<void> {
    const real = await this.inside(path);
    await mkdir(dirname(real), { recursive: true });
    // A link may have been created there since the check.
    const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
    const file = await open(
      join(await this.inside(dirname(real)), basename(real)),
      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
      0o666,
    );
    try {
      await file.writeFile(content);
    } finally {
      await file.close();
    }
  }
}

/** The real path, also for a file that does not exist yet in an existing directory. */
async function realOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    if (dirname(path) === path) return path;
    const parent = await realOf(dirname(path));
    return join(parent, basename(path));
  }
}
