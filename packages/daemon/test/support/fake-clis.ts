import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A directory of programs that a test makes up, to be the whole search path of a daemon. */
export class FakeClis {
  constructor(readonly directory: string) {
    mkdirSync(directory, { recursive: true });
  }

  /** The search path: the made-up programs, and what their first line needs. */
  get path(): string {
    return `${this.directory}:${dirname(process.execPath)}`;
  }

  file(name: string): string {
    return join(this.directory, name);
  }

  /** A program whose source is JavaScript; `prompt` is what came over stdin. */
  add(name: string, source: string): string {
    const file = this.file(name);
    const text = `#!${process.execPath}
const chunks = [];
process.stdin.on('data', (chunk) => chunks.push(chunk));
process.stdin.on('end', () => main(Buffer.concat(chunks).toString()));
const args = process.argv.slice(2);
function main(prompt) {
${source}
}
`;
    writeFileSync(file, text);
    chmodSync(file, 0o755);
    return file;
  }

  /** A program that is there and does nothing. */
  addEmpty(...names: string[]): void {
    for (const name of names) this.add(name, '');
  }

  remove(name: string): void {
    rmSync(this.file(name));
  }
}
