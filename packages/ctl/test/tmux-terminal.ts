import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const hasTmux = spawnSync('tmux', ['-V']).status === 0;

/** A real terminal: a shell in a tmux server of its own, driven by keys and read as text. */
export class TmuxTerminal {
  readonly home = mkdtempSync(join(tmpdir(), 'ctl-tmux-'));
  readonly #socket = join(this.home, 'tmux.sock');

  constructor(
    { columns, rows }: { columns: number; rows: number },
    env: Record<string, string> = {},
  ) {
    const shell = ['env', '-i', ...pairs({ ...this.#base, ...env }), 'bash', '--norc'];
    const size = ['-x', String(columns), '-y', String(rows)];
    this.#tmux('-f', '/dev/null', 'new-session', '-d', ...size, shell.map(quoted).join(' '));
  }

  get #base(): Record<string, string> {
    const { PATH = '' } = process.env;
    return { PATH, HOME: this.home, TERM: 'screen', LANG: 'C.UTF-8', PS1: 'prompt$ ' };
  }

  /** Names of keys as tmux has them: `Enter`, `Down`, `C-c`. */
  press(...keys: string[]): void {
    this.#tmux('send-keys', '--', ...keys);
  }

  type(text: string): void {
    this.#tmux('send-keys', '-l', '--', text);
  }

  run(command: string): void {
    this.type(command);
    this.press('Enter');
  }

  screen(): string {
    return this.#tmux('capture-pane', '-p');
  }

  /** The screen with its colours. */
  colours(): string {
    return this.#tmux('capture-pane', '-p', '-e');
  }

  lines(): string[] {
    return this.screen().split('\n').slice(0, -1);
  }

  get isAlternate(): boolean {
    return this.#tmux('display-message', '-p', '#{alternate_on}').trim() === '1';
  }

  get hasCursor(): boolean {
    return this.#tmux('display-message', '-p', '#{cursor_flag}').trim() === '1';
  }

  resize(columns: number, rows: number): void {
    this.#tmux('resize-window', '-x', String(columns), '-y', String(rows));
  }

  close(): void {
    this.#tmux('kill-server');
    // What ran in the terminal may still write while it ends, and Node lists a directory once only.
    for (let triesLeft = 100; ; triesLeft--) {
      try {
        return rmSync(this.home, { recursive: true, force: true, maxRetries: 1, retryDelay: 50 });
      } catch (error) {
        if (triesLeft === 0 || (error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
      }
    }
  }

  #tmux(...args: string[]): string {
    return execFileSync('tmux', ['-u', '-S', this.#socket, ...args], { encoding: 'utf8' });
  }
}

function pairs(env: Record<string, string>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
