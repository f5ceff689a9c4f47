import { Keys, Screen, type Key } from './screen.js';
import type { Transcript } from './transcript.js';
import { runTurn } from './turn.js';

export interface ConversationParts {
  transcript: Transcript;
  cwd: string;
  prompt: string | undefined;
}

interface Question {
  text: string;
  answer: (isYes: boolean) => void;
  typed: string;
}

const rule = '─'.repeat(60);
const frames = ['✻', '✶', '✳', '✢'];
const frameMs = 120;

/** An interactive conversation at a terminal. Resolves with the exit code. */
export function converse(parts: ConversationParts): Promise<number> {
  return new Promise((resolve) => new Conversation(parts, resolve).begin());
}

class Conversation {
  readonly #screen = new Screen(
    (text) => void process.stdout.write(text),
    () => process.stdout.columns ?? 80,
  );
  readonly #keys = new Keys();
  #typed = '';
  readonly #waiting: string[] = [];
  #turn: AbortController | undefined;
  #question: Question | undefined;
  #frame = 0;
  #ticks: NodeJS.Timeout | undefined;

  constructor(
    private readonly parts: ConversationParts,
    private readonly end: (code: number) => void,
  ) {}

  begin(): void {
    process.stdin.setRawMode(true);
    process.stdin.setEncoding('utf8');
    process.stdin.on('data', (chunk: string) => {
      for (const key of this.#keys.take(chunk)) this.#press(key);
    });
    process.stdin.on('end', () => this.#leave(0));
    // A paste is marked as such.
    process.stdout.write('\u001b[?2004h');
    this.#screen.say(['Fake Agent 1.0', `cwd: ${this.parts.cwd}`, ''], this.#bottom());
    if (this.parts.prompt !== undefined) this.#submit(this.parts.prompt);
  }

  #leave(code: number): void {
    clearInterval(this.#ticks);
    process.stdout.write('\u001b[?2004l');
    this.end(code);
  }

  #press(key: Key): void {
    if (this.#question) return this.#choose(this.#question, key);
    switch (key.key) {
      case 'text':
        this.#typed += key.text;
        break;
      case 'backspace':
        this.#typed = this.#typed.slice(0, -1);
        break;
      case 'escape':
        this.#turn?.abort();
        break;
      case 'end':
        return this.#leave(0);
      case 'enter': {
        const text = this.#typed;
        this.#typed = '';
        if (text.trim() !== '') this.#submit(text);
        break;
      }
    }
    this.#screen.redraw(this.#bottom());
  }

  #choose(question: Question, key: Key): void {
    switch (key.key) {
      case 'text':
        question.typed += key.text;
        if (/^[12]$/.test(question.typed.trim())) question.answer(question.typed.trim() === '1');
        break;
      case 'enter':
        question.answer(!/^(?:2|no?\b)/i.test(question.typed.trim()));
        break;
      case 'escape':
        question.answer(false);
        this.#turn?.abort();
        break;
      case 'end':
        return this.#leave(0);
      case 'backspace':
    }
    this.#screen.redraw(this.#bottom());
  }

  #submit(text: string): void {
    if (this.#turn) {
      this.#waiting.push(text);
      return;
    }
    if (text.trim() === '/exit') return this.#leave(0);
    void this.#work(text);
  }

  async #work(text: string): Promise<void> {
    this.#turn = new AbortController();
    this.#say(`> ${text.split('\n')[0]}`);
    this.#ticks = setInterval(() => {
      this.#frame++;
      this.#screen.redraw(this.#bottom());
    }, frameMs);
    const { signal } = this.#turn;
    const code = text.trim() === '/compact' ? this.#compact() : await this.#runTurn(text, signal);
    clearInterval(this.#ticks);
    this.#turn = undefined;
    this.#question = undefined;
    if (code !== undefined) return this.#leave(code);
    this.#screen.redraw(this.#bottom());
    const next = this.#waiting.shift();
    if (next !== undefined) this.#submit(next);
  }

  #compact(): undefined {
    this.parts.transcript.compact();
    this.#say('● Compacted the conversation');
  }

  /** Answers the exit code, when the turn was the last one. */
  async #runTurn(text: string, signal: AbortSignal): Promise<number | undefined> {
    const { transcript, cwd } = this.parts;
    const ui = {
      say: (said: string) => this.#say(`● ${said}`),
      message: () => {},
      requestPermission: (question: string) => this.#requestPermission(question, signal),
    };
    const end = await runTurn({ transcript, cwd, signal, ui }, text);
    switch (end.kind) {
      case 'limited':
      case 'failed':
        this.#say(`  ⎿  ${end.text}`);
        return undefined;
      case 'interrupted':
        this.#say('  ⎿  Interrupted by user');
        return undefined;
      case 'crashed':
        this.#say(`The fake agent crashes as scripted, with code ${end.code}`);
        return end.code;
      case 'answered':
        return undefined;
    }
  }

  #requestPermission(text: string, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const answer = (isYes: boolean) => {
        this.#question = undefined;
        resolve(isYes);
      };
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      this.#question = { text, answer, typed: '' };
      this.#screen.redraw(this.#bottom());
    });
  }

  #say(text: string): void {
    this.#screen.say([...text.split('\n'), ''], this.#bottom());
  }

  #bottom(): string[] {
    if (this.#question) {
      const { text, typed } = this.#question;
      return [
        rule,
        ...questionLines(text),
        ' ❯ 1. Yes',
        '   2. No, and say what to do differently (esc)',
        `   ${typed.replaceAll('\n', ' ')}`,
      ];
    }
    const spinner = this.#turn
      ? [`${frames[this.#frame % frames.length]} Working… (${this.#frame} · esc to interrupt)`, '']
      : [];
    const typed = this.#typed.replaceAll('\n', ' ');
    return [...spinner, rule, `> ${typed}`, rule, '  ? for shortcuts'];
  }
}

/** A question for a command shows it as claude does. */
function questionLines(text: string): string[] {
  if (!text.startsWith('$ ')) return [` ${text}`];
  return [' Bash command', '', `   ${text.slice(2)}`, '', ' Do you want to proceed?'];
}
