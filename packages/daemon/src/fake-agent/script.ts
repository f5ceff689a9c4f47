/** One thing that the fake agent does in a turn. */
export type Step =
  | { do: 'sleep'; ms: number }
  | { do: 'wait'; file: string }
  | { do: 'ask'; question: string }
  | { do: 'limit'; minutes: number }
  | { do: 'fail'; status: number }
  | { do: 'crash'; code: number; unless: string | undefined }
  | { do: 'context'; tokens: number }
  | { do: 'write'; file: string }
  | { do: 'commit'; message: string }
  | { do: 'say'; text: string };

const units: Readonly<Record<string, number>> = { '': 1, k: 1_000, m: 1_000_000 };

/**
 * What a prompt asks for, in its order:
 * `sleep 2` works for that many seconds; `wait go.txt` works until there is such a file; `ask` wants a permission, `ask "$ make"` that to run a command; `limit 60` hits a limit that
 * ends after that many minutes; `fail 500` ends the turn with that API error; `crash 3` ends the program with that code, `crash 3 unless done.txt`
 * only while there is no such file; `context 450k` fills the context; `write notes.txt` makes a
 * file; `commit` commits everything; `say hello` says the rest of the line. Everything else is
 * answered politely.
 */
export function stepsOf(prompt: string): Step[] {
  const words =
    /\bsay +(.+)|\bsleep +(\d+(?:\.\d+)?)|\bwait +([\w./-]+)|\bask\b(?: +"([^"]+)")?|\blimit\b(?: +(\d+))?|\bfail +(\d{3})\b|\bcrash\b(?: +(\d+))?(?: +unless +(\S+))?|\bcontext +(\d+(?:\.\d+)?)([km]?)\b|\bwrite +([\w./-]+)|\bcommit\b(?: +"([^"]+)")?/gi;
  const steps: Step[] = [];
  for (const match of prompt.matchAll(words)) {
    const [whole, say, sleep, wait, question, limit, status, ...rest] = match;
    const [crash, unless, context, unit, file, message] = rest;
    const verb = whole.split(/\s/)[0]!.toLowerCase();
    switch (verb) {
      case 'say':
        steps.push({ do: 'say', text: say! });
        break;
      case 'sleep':
        steps.push({ do: 'sleep', ms: Number(sleep) * 1000 });
        break;
      case 'wait':
        steps.push({ do: 'wait', file: wait! });
        break;
      case 'ask':
        steps.push({ do: 'ask', question: question ?? 'Do you want to proceed?' });
        break;
      case 'limit':
        steps.push({ do: 'limit', minutes: Number(limit ?? 60) });
        break;
      case 'fail':
        steps.push({ do: 'fail', status: Number(status) });
        break;
      case 'crash':
        steps.push({ do: 'crash', code: Number(crash ?? 1), unless });
        break;
      case 'context':
        steps.push({ do: 'context', tokens: Number(context) * units[unit!.toLowerCase()]! });
        break;
      case 'write':
        steps.push({ do: 'write', file: file! });
        break;
      default:
        steps.push({ do: 'commit', message: message ?? 'Work of the fake agent' });
    }
  }
  return steps;
}

/** The answer at the end of a turn when the prompt does not set one. */
export function answerTo(prompt: string): string {
  const line = prompt.trim().split('\n')[0]!.slice(0, 100);
  return `Done: ${line}`;
}

export interface Options {
  isPrint: boolean;
  isJson: boolean;
  sessionId: string | undefined;
  resume: string | undefined;
  model: string;
  prompt: string | undefined;
  /** MCP servers, as JSON. */
  mcpConfig: string | undefined;
  /** The tool that is called for a permission: `mcp__SERVER__TOOL`. */
  permissionTool: string | undefined;
}

const flagsWithValue = new Set([
  '--output-format',
  '--permission-mode',
  '--add-dir',
  // Of codex and gemini, under whose names it can stand for them in a race.
  '--approval-mode',
  '--sandbox',
  '--config',
]);

/** Parses the arguments of claude that matter here, and those of others that name no prompt. */
export function optionsOf(args: readonly string[]): Options {
  const options: Options = {
    isPrint: false,
    isJson: false,
    sessionId: undefined,
    resume: undefined,
    model: 'claude-sonnet-4-5',
    prompt: undefined,
    mcpConfig: valueOf(args, '--mcp-config'),
    permissionTool: valueOf(args, '--permission-prompt-tool'),
  };
  const words: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    if (arg === '-p' || arg === '--print') options.isPrint = true;
    else if (arg === '--session-id') options.sessionId = args[++at];
    else if (arg === '--resume') options.resume = args[++at];
    else if (arg === '--model') options.model = args[++at] ?? options.model;
    else if (flagsWithValue.has(arg)) {
      at++;
      if (args[at] === 'stream-json') options.isJson = true;
    } else if (arg === '--') words.push(...args.slice(at + 1));
    else if (at === 0 && arg === 'exec') options.isPrint = true;
    else if (!arg.startsWith('-')) words.push(arg);
    if (arg === '--') break;
  }
  if (words.length > 0) options.prompt = words.join(' ');
  return options;
}

/** The value of a flag in the form `--flag=value`. */
function valueOf(args: readonly string[], flag: string): string | undefined {
  return args.find((arg) => arg.startsWith(`${flag}=`))?.slice(flag.length + 1);
}
