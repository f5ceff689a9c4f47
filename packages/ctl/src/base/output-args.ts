export const outputFormats = ['table', 'json', 'yaml', 'csv', 'name'] as const;
export type OutputFormat = (typeof outputFormats)[number];

/** Groups that pass options on to another program, which may have a `-o` of its own. */
export const passingOn: ReadonlySet<string> = new Set(['git', 'check']);

export interface OutputArgs {
  readonly format: OutputFormat;
  /** The command line without options: `db`, `serve`. */
  readonly words: readonly string[];
  /** Whether `-o` is ours. */
  readonly hasFormat: boolean;
  /** `--utc` */
  readonly utc: boolean;
}

/** Reads what must be known before the parser runs, because its own errors depend on it. */
export function outputArgs(args: readonly string[]): OutputArgs {
  const end = args.indexOf('--');
  const before = end < 0 ? args : args.slice(0, end);
  const words: string[] = [];
  let given: string | undefined;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    if (at < before.length && /^(-o|--output-format)$/.test(arg)) given = before[++at];
    else if (at < before.length && /^(-o=?.|--output-format=)/.test(arg)) {
      given = arg.replace(/^(-o=?|--output-format=)/, '');
    } else if (!arg.startsWith('-')) words.push(arg);
  }
  // `ctl help git` shows the same as `ctl git --help`.
  const group = (words[0] === 'help' ? words[1] : words[0]) ?? '';
  if (passingOn.has(group)) {
    const plain = args.filter((arg) => !arg.startsWith('-'));
    return { format: formatOf(before, undefined), words: plain, hasFormat: false, utc: false };
  }
  return { format: formatOf(before, given), words, hasFormat: true, utc: before.includes('--utc') };
}

function formatOf(args: readonly string[], given: string | undefined): OutputFormat {
  const named = outputFormats.find((format) => format === given);
  return named ?? (args.includes('--json') ? 'json' : 'table');
}
