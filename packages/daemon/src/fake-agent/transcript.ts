import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

export interface TranscriptOptions {
  sessionId: string;
  model: string;
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  now: () => Date;
}

const freshContext = 12_000;
const perTurn = 2_000;

/** Where claude stores the transcript of a session. */
export function transcriptFile({
  sessionId,
  cwd,
  environment,
}: Pick<TranscriptOptions, 'sessionId' | 'cwd' | 'environment'>): string {
  const home = environment['HOME'] || homedir();
  const config = environment['CLAUDE_CONFIG_DIR'] || join(home, '.claude');
  return join(config, 'projects', cwd.replaceAll(/[^A-Za-z0-9]/g, '-'), `${sessionId}.jsonl`);
}

/** The transcript of the fake agent, in the shape of claude's. */
export class Transcript {
  readonly #options: TranscriptOptions;
  readonly #file: string;
  #messages = 0;
  #context = freshContext;

  constructor(options: TranscriptOptions) {
    this.#options = options;
    this.#file = transcriptFile(options);
    mkdirSync(dirname(this.#file), { recursive: true });
    if (existsSync(this.#file)) this.#recall();
  }

  get context(): number {
    return this.#context;
  }

  set context(tokens: number) {
    this.#context = Math.round(tokens);
  }

  compact(): void {
    const preTokens = this.#context;
    this.#context = Math.max(5_000, Math.round(preTokens / 10));
    this.#write({
      type: 'system',
      subtype: 'compact_boundary',
      content: 'Conversation compacted',
      compactMetadata: { trigger: 'manual', preTokens },
    });
    this.said('Compacted.');
  }

  prompted(text: string): void {
    this.#write({ type: 'user', message: { role: 'user', content: text } });
  }

  usedTool(name: string, input: object): object {
    const id = `toolu_${this.#messages}`;
    return this.#answer([{ type: 'tool_use', id, name, input }], 'tool_use');
  }

  toolAnswered(text: string): void {
    const id = `toolu_${this.#messages - 1}`;
    const content = [{ type: 'tool_result', tool_use_id: id, content: text }];
    this.#write({ type: 'user', message: { role: 'user', content } });
  }

  interrupted(): void {
    const content = [{ type: 'text', text: '[Request interrupted by user]' }];
    this.#write({ type: 'user', message: { role: 'user', content } });
  }

  said(text: string): object {
    return this.#answer([{ type: 'text', text }], 'end_turn');
  }

  /** The line that claude writes when the provider refuses. */
  refused(text: string): void {
    this.#write({
      type: 'assistant',
      isApiErrorMessage: true,
      message: {
        id: `msg_error_${this.#messages}`,
        role: 'assistant',
        model: '<synthetic>',
        content: [{ type: 'text', text }],
        stop_reason: 'stop_sequence',
        usage: { input_tokens: 0, output_tokens: 0 },
      },
    });
  }

  #answer(content: object[], stopReason: string): object {
    const { sessionId, model } = this.#options;
    const added = perTurn;
    const message = {
      id: `msg_${sessionId}_${this.#messages}`,
      type: 'message',
      role: 'assistant',
      model,
      content,
      stop_reason: stopReason,
      usage: {
        input_tokens: 10,
        cache_creation_input_tokens: added,
        cache_read_input_tokens: Math.max(0, this.#context - added - 10),
        output_tokens: 50,
      },
    };
    this.#write({ type: 'assistant', requestId: `req_${sessionId}_${this.#messages}`, message });
    this.#messages++;
    this.#context += perTurn;
    return message;
  }

  #write(line: object): void {
    const { sessionId, cwd, now } = this.#options;
    const common = { sessionId, cwd, timestamp: now().toISOString(), isSidechain: false };
    appendFileSync(this.#file, `${JSON.stringify({ ...common, ...line })}\n`);
  }

  /** Continues a resumed session. */
  #recall(): void {
    for (const line of readFileSync(this.#file, 'utf8').split('\n')) {
      if (!line.includes('"cache_read_input_tokens"')) continue;
      const { message } = JSON.parse(line) as { message: { usage: Record<string, number> } };
      const { input_tokens = 0, cache_read_input_tokens = 0 } = message.usage;
      this.#messages++;
      this.#context = input_tokens + cache_read_input_tokens + 2 * perTurn;
    }
  }
}
